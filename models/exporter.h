// SPDX-License-Identifier: Apache-2.0
// Which program wrote a model's file, and how it is told to keep BatchNorm.
#pragma once
#include "models/graph.h"

namespace zsq::models {

struct Exporter {
  std::string name, version;   // "PyTorch's exporter by torch.export", "2.11.0"; empty: not known
  std::string export_line;     // Python, of this exporter and version; empty: there is none
  std::string advice = {};     // where there is none: what keeps the statistics instead
  bool leaves_traces = false;  // whether names tell where it has folded BatchNorm
};
Exporter exporter_of(const Model& model);

}  // namespace zsq::models
