// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tables/grid.h"

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

}  // namespace
}  // namespace zsq::pipeline
