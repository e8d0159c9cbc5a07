// SPDX-License-Identifier: Apache-2.0
// latency.json of an output folder, which `scripts/bench_runtimes.py --record` writes beside a run:
// {"machine", "threads", "rows": [{"runtime", "batch", "float_ms", "ms"}]}, milliseconds of an
// image, the minimum of all rounds.
#pragma once
#include "analysis/svg.h"
#include "pipeline/report/grid.h"
#include "pipeline/report/json.h"

namespace zsq::pipeline {

inline constexpr const char* kLatencyFile = "latency.json";

// Bars of the first row of each runtime: the float network and the run, whose scheme is given.
std::vector<analysis::Svg> latency_charts(const Json& latency, const std::string& scheme);

// All rows; empty without.
std::string latency_table(const Json& latency);

// Of the first row: "onnxruntime, one image", and its milliseconds. Nothing if there is no row.
struct Latency {
  std::string where;
  double ms = 0;
};
std::optional<Latency> first_latency(const Json& latency);

}  // namespace zsq::pipeline
