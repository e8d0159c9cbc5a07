// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/grid.h"

#include <gtest/gtest.h>

namespace zsq::pipeline {
namespace {

const Grid kGrid{{{"row"}, {"value, %", true}, {"why"}, {"none"}},
                 {{"a|b", "1.50", "50 & more, \"all\"", ""}, {"c_d", "", "", ""}}};

TEST(Grid, EmptyColumnsGo) {
  const Grid kept = without_empty_columns(kGrid);
  ASSERT_EQ(kept.columns.size(), 3u);
  EXPECT_EQ(kept.columns[2].head, "why");
  EXPECT_TRUE(kept.columns[1].number);
  EXPECT_EQ(kept.rows[1], (std::vector<std::string>{"c_d", "", ""}));
}

TEST(Grid, Markdown) {
  EXPECT_EQ(to_markdown(without_empty_columns(kGrid)),
            "| row | value, % | why |\n| --- | ---: | --- |\n"
            "| a\\|b | 1.50 | 50 & more, \"all\" |\n| c_d |  |  |\n");
}

TEST(Grid, CsvQuotesWhatHoldsCommasAndQuotes) {
  EXPECT_EQ(to_csv(kGrid),
            "row,\"value, %\",why,none\na|b,1.50,\"50 & more, \"\"all\"\"\",\nc_d,,,\n");
}

TEST(Grid, LatexEscapesWhatItReadsAsCommands) {
  EXPECT_EQ(to_latex(without_empty_columns(kGrid)),
            "\\begin{tabular}{lrl}\n\\toprule\nrow & value, \\% & why \\\\\n\\midrule\n"
            "a|b & 1.50 & 50 \\& more, \"all\" \\\\\nc\\_d &  &  \\\\\n"
            "\\bottomrule\n\\end{tabular}\n");
}

TEST(Grid, TextHasAlignedColumns) {
  EXPECT_EQ(to_text(without_empty_columns(kGrid)),
            "row  value, %  why\n"
            "a|b      1.50  50 & more, \"all\"\n"
            "c_d\n");
}

TEST(Grid, HtmlNamesItsRowsAndColumns) {
  EXPECT_EQ(
      to_html({{{"row"}, {"value", true}}, {{"a<b", "1.50"}}}, "what \"it\" is"),
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"what &quot;it&quot; is\">"
      "<table>\n<caption><span>what &quot;it&quot; is</span></caption>\n"
      "<thead><tr><th scope=\"col\">row</th><th scope=\"col\" class=\"number\">value</th>"
      "</tr></thead>\n<tbody>\n"
      "<tr><th scope=\"row\">a&lt;b</th><td class=\"number\">1.50</td></tr>\n"
      "</tbody></table></div>\n");
}

}  // namespace
}  // namespace zsq::pipeline
