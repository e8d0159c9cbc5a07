// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::models {

// A Clip (ReLU, ReLU6) of what only moves values, or picks the largest, changes places with it:
//   clip(max_pool(x)) = max_pool(clip(x)), and so for Flatten, Reshape, Transpose, Slice, Expand,
//   nearest Resize, and a Pad whose own value the Clip keeps.
// Then it stands after the layer or sum that it belongs to, with which runtimes compute it. After
// a move its result would be a second grid on the same values. Only where a layer comes after it.
void put_clips_first(Model& model);

}  // namespace zsq::models
