// SPDX-License-Identifier: Apache-2.0
// A network made ready for many images without gradients, on the device of its parameters:
//   what reads no image is computed once, such as the quantized weights of a student;
//   a BatchNorm that alone reads a convolution with constant weights is folded into it,
//     W' = t W,  b' = t (b - mean) + beta,  t = gamma / sqrt(variance + eps);
//   on a CPU images lie channels_last, and as few are computed at a time as keep the largest value
//     between two layers within 32 MiB.
// The same function as execute(), but for rounding.
#pragma once
#include "models/graph.h"

namespace zsq::models {

class Inference {
 public:
  static constexpr double kBytesOfLargest = 32 << 20;  // of the images that are computed at a time

  Inference(const Graph& graph, const ParameterStore& parameters);

  // images f32 [N, C, H, W] -> the output node's value, f32 [N, ...].
  at::Tensor operator()(const at::Tensor& images) const;

 private:
  Graph graph_;
  ParameterStore parameters_;
  bool on_cpu_;
  std::int64_t images_at_once_;
};

}  // namespace zsq::models
