// SPDX-License-Identifier: Apache-2.0
// The attributes that Conv, MaxPool and AveragePool share.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

struct Window {
  Pair kernel, stride, dilation;
  Pads pads;
  bool ceil_mode;
  // One window over the whole map of `x`, without pads.
  bool covers(const Shape& x) const;
};

// `kernel` from the weight, or from the attribute kernel_shape where it is {0, 0}. auto_pad is
// resolved from the shape of `x`.
Window read_window(const Call& call, NodeId x, Pair kernel = {0, 0});

}  // namespace zsq::models::onnx
