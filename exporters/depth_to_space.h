// SPDX-License-Identifier: Apache-2.0
// Channels that a network spreads over the map (models/onnx/rearrange.h: Reshape, Transpose,
// Reshape) as the one operator DepthToSpace, which onnxruntime 1.31.1 runs on codes in two thirds
// of the time.
#pragma once
#include <optional>

#include "exporters/plan.h"

namespace zsq::exporters {

struct DepthToSpace {
  models::NodeId input;
  const char* mode;  // CRD: channel (c, i, j) becomes pixel (i, j) of its block; DCR: (i, j, c)
  std::int64_t block;
  std::vector<models::NodeId> inside;  // what it stands for, but for the last node
};

// Whether `last` ends such a chain. Quantizers in between must have the grid of the input's.
std::optional<DepthToSpace> depth_to_space(const quant::Student& student, const Plan& plan,
                                           models::NodeId last);

}  // namespace zsq::exporters
