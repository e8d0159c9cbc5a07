// SPDX-License-Identifier: Apache-2.0
// Blocks of b_h x b_w pixels as channels and back, as Reshape, Transpose and Reshape, which only
// move values and run on codes as well.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// [N, C b_h b_w, H, W] -> [N, C, H b_h, W b_w]; channel (c, i, j) becomes pixel (i, j) of its
// block.
NodeId spread_channels(Call& call, NodeId x, Pair block);

// A BatchNormalization after a convolution whose channels were spread acts on that convolution with
// each parameter repeated, so that its statistics are those of a layer's output; the values are
// spread, and cropped, after it. False: its input is something else.
bool normalize_before_spreading(Call& call, const std::string& name);

// The given places along an axis, neighbours in one slice. Error if there are none, or too many.
NodeId pick(Call& call, NodeId x, std::int64_t axis, const std::vector<std::int64_t>& places);

}  // namespace zsq::models::onnx
