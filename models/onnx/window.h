// SPDX-License-Identifier: Apache-2.0
// The attributes that Conv, MaxPool and AveragePool share.
#pragma once
#include "models/onnx/importer.h"
#include "models/pools.h"

namespace zsq::models::onnx {

struct Window {
  Pair kernel, stride, dilation;
  Pads pads;
  bool ceil_mode;
  // One window over the whole map of `x`, without pads.
  bool covers(const Shape& x) const;
  // Along height (0) or width (1) of a map of the shape `x`.
  Sliding along(const Shape& x, std::size_t i) const;
};

// `kernel` from the weight, or from the attribute kernel_shape where it is {0, 0}. auto_pad is
// resolved from the shape of `x`.
Window read_window(const Call& call, NodeId x, Pair kernel = {0, 0});

// Stride and dilation alone, without pads.
Window read_stride(const Call& call, Pair kernel);

// The window of a pool; refuses what onnxruntime refuses or computes otherwise than specified.
Window read_pool_window(const Call& call, NodeId x);

}  // namespace zsq::models::onnx
