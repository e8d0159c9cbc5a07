// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/grid.h"

#include <algorithm>

#include "analysis/svg.h"

namespace zsq::pipeline {
namespace {

template <class Escape>
std::string joined(const std::vector<std::string>& texts, const std::string& between,
                   const Escape& escape) {
  std::string line;
  for (std::size_t i = 0; i < texts.size(); ++i) line += (i ? between : "") + escape(texts[i]);
  return line;
}

std::vector<std::string> heads(const Grid& grid) {
  std::vector<std::string> texts;
  for (const Column& column : grid.columns) texts.push_back(column.head);
  return texts;
}

std::string in_markdown(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '|' ? std::string("\\|") : std::string(1, c);
  return safe;
}

std::string in_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string in_latex(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (std::string("&%$#_{}").find(c) != std::string::npos)
      safe += std::string("\\") + c;
    else if (c == '\\')
      safe += "\\textbackslash{}";
    else if (c == '~')
      safe += "\\textasciitilde{}";
    else if (c == '^')
      safe += "\\textasciicircum{}";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

Grid without_empty_columns(const Grid& grid) {
  Grid kept;
  kept.rows.resize(grid.rows.size());
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    const auto filled = [&](const auto& row) { return !row[c].empty(); };
    if (std::none_of(grid.rows.begin(), grid.rows.end(), filled)) continue;
    kept.columns.push_back(grid.columns[c]);
    for (std::size_t r = 0; r < grid.rows.size(); ++r) kept.rows[r].push_back(grid.rows[r][c]);
  }
  return kept;
}

std::string to_text(const Grid& grid) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    widths.push_back(grid.columns[c].head.size());
    for (const auto& row : grid.rows) widths[c] = std::max(widths[c], row[c].size());
  }
  const auto line = [&](const std::vector<std::string>& texts) {
    std::string line;
    for (std::size_t c = 0; c < texts.size(); ++c) {
      const std::string space(widths[c] - texts[c].size(), ' ');
      line += (c ? "  " : "") + (grid.columns[c].number ? space + texts[c] : texts[c] + space);
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = line(heads(grid));
  for (const auto& row : grid.rows) text += line(row);
  return text;
}

std::string to_markdown(const Grid& grid) {
  std::string text = "| " + joined(heads(grid), " | ", in_markdown) + " |\n|";
  for (const Column& column : grid.columns) text += column.number ? " ---: |" : " --- |";
  text += "\n";
  for (const auto& row : grid.rows) text += "| " + joined(row, " | ", in_markdown) + " |\n";
  return text;
}

std::string to_csv(const Grid& grid) {
  std::string text = joined(heads(grid), ",", in_csv) + "\n";
  for (const auto& row : grid.rows) text += joined(row, ",", in_csv) + "\n";
  return text;
}

std::string to_latex(const Grid& grid) {
  std::string text = "\\begin{tabular}{";
  for (const Column& column : grid.columns) text += column.number ? "r" : "l";
  text += "}\n\\toprule\n" + joined(heads(grid), " & ", in_latex) + " \\\\\n\\midrule\n";
  for (const auto& row : grid.rows) text += joined(row, " & ", in_latex) + " \\\\\n";
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string to_html(const Grid& grid, const std::string& caption) {
  const auto cell = [&](const std::string& tag, std::size_t column, const std::string& text) {
    return "<" + tag + (grid.columns[column].number ? " class=\"number\">" : ">") +
           analysis::escaped(text) + "</" + tag.substr(0, 2) + ">";
  };
  const std::string words = analysis::escaped(caption);
  std::string html = "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + words +
                     "\"><table>\n<caption><span>" + words + "</span></caption>\n<thead><tr>";
  for (std::size_t c = 0; c < grid.columns.size(); ++c)
    html += cell("th scope=\"col\"", c, grid.columns[c].head);
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : grid.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      html += cell(c == 0 ? "th scope=\"row\"" : "td", c, row[c]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace zsq::pipeline
