// SPDX-License-Identifier: Apache-2.0
// What the HTML pages of reports are made of. A page loads nothing: its policy forbids it. Tables
// (pipeline/report/grid.h) can be sorted by a click on a heading, and are read as well without
// JavaScript. Light and dark, from 360 pixels of width, and on paper.
#pragma once
#include <string>
#include <vector>

#include "analysis/svg.h"

namespace zsq::pipeline {

// `title` is text, `body` HTML.
std::string page(const std::string& title, const std::string& body);

// Empty if `content` is.
std::string section(const std::string& title, const std::string& content);
std::string paragraph(const std::string& text);
// Small charts in as many columns as there is room for.
std::string chart_grid(const std::vector<analysis::Svg>& charts);
// A chart of its own width, which scrolls where there is no room.
std::string wide_chart(const analysis::Svg& chart);
// mood: "good", "fair", "bad"
std::string verdict_box(const std::string& mood, const std::string& headline,
                        const std::string& text);

}  // namespace zsq::pipeline
