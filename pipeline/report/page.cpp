// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/page.h"

#include "pipeline/report/page_style.h"

namespace zsq::pipeline {

using analysis::escaped;

std::string page(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
         "data:; "
         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n" + analysis::svg_style() + "<style>" + kPageStyle +
         "</style></head>\n<body><main>\n<h1>" + escaped(title) + "</h1>\n" + body +
         "</main>\n<script>" + kPageScript + "</script></body></html>\n";
}

std::string section(const std::string& title, const std::string& content) {
  if (content.empty()) return "";
  return "<section>\n<h2>" + escaped(title) + "</h2>\n" + content + "</section>\n";
}

std::string paragraph(const std::string& text) { return "<p>" + escaped(text) + "</p>\n"; }

std::string chart_grid(const std::vector<analysis::Svg>& charts) {
  if (charts.empty()) return "";
  std::string html = "<div class=\"charts\">\n";
  for (const analysis::Svg& chart : charts) html += chart.element();
  return html + "</div>\n";
}

std::string wide_chart(const analysis::Svg& chart) {
  return "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"chart\">" +
         chart.element() + "</div>\n";
}

std::string verdict_box(const std::string& mood, const std::string& headline,
                        const std::string& text) {
  return "<div class=\"verdict " + mood + "\"><strong>" + escaped(headline) + "</strong>" +
         paragraph(text) + "</div>\n";
}

}  // namespace zsq::pipeline
