// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analysis/plots.h"
#include "pipeline/report/history.h"

namespace zsq::pipeline {

struct NamedHistory {
  std::string name;
  std::vector<HistoryRecord> records;
};

// A chart for each loss, KL and agreement that a run recorded, a curve in it for each run. Curves
// are means over equal parts, 120 at most.
std::vector<analysis::Svg> curve_charts(const std::vector<NamedHistory>& runs);

}  // namespace zsq::pipeline
