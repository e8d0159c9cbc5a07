// SPDX-License-Identifier: Apache-2.0
// Networks of residual units: ResNet and RegNet.
#pragma once
#include "models/architectures/builder.h"

namespace zsq::models {

struct ResidualStage {
  int units;
  std::int64_t width, out;  // of the unit's inner convolutions; of its output
  std::int64_t group_width = 0;
};

struct ResidualDesign {
  std::int64_t stem;          // width
  bool imagenet_stem = true;  // 7x7, stride 2 and a 3x3 pool; else 3x3
  std::vector<ResidualStage> stages;
  bool bottleneck = false;        // 1x1, 3x3, 1x1; else 3x3, 3x3
  bool excites = false;           // squeeze and excitation to a quarter of the unit's input
  std::int64_t stem_stride = 1;   // of a 3x3 stem
  std::int64_t first_stride = 1;  // of the first stage; the others have 2
  std::int64_t classes = 1000;
};

// Letters: s, u: stage and unit from 0; S, U: from 1; n: the unit's convolution from 1, l: as a
// letter; k: from 0, with squeeze and excitation counted.
struct ResidualNames : Convention {
  Names stem;
  const char* unit;
  Names body, projection;
  const char *reduce = "", *restore = "";
  bool padded_shortcut = false;  // option A: every other pixel, new channels zero
  bool stride_in_first = false;  // of a bottleneck; else in its 3x3 convolution
};

// The logits.
NodeId residual_network(Builder& net, const ResidualDesign& design, const ResidualNames& names);

}  // namespace zsq::models
