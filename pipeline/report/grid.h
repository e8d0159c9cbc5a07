// SPDX-License-Identifier: Apache-2.0
// A table of texts, as plain text, Markdown, CSV, LaTeX or HTML.
#pragma once
#include <string>
#include <vector>

namespace zsq::pipeline {

struct Column {
  std::string head;
  bool number = false;  // set flush right
};

struct Grid {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many texts as there are columns
};

Grid without_empty_columns(const Grid& grid);

std::string to_text(const Grid& grid);  // columns aligned
std::string to_markdown(const Grid& grid);
std::string to_csv(const Grid& grid);    // RFC 4180, every line ended by \n
std::string to_latex(const Grid& grid);  // a tabular with booktabs' rules
// The first column names the rows. A page may sort it and scrolls it if it is wide
// (pipeline/report/page.h).
std::string to_html(const Grid& grid, const std::string& caption);

}  // namespace zsq::pipeline
