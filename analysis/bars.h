// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analysis/svg.h"

namespace zsq::analysis {

struct Bar {
  std::string name;
  double value = 0;  // below 0 or not finite: no bar, only the text
  std::string text;  // after the bar
  std::size_t colour = 0;
};

// Horizontal bars from 0, one below the other; the longest is the largest value, or `full` if that
// is larger.
Svg bar_chart(const std::string& title, const std::vector<Bar>& bars, double full = 0);

}  // namespace zsq::analysis
