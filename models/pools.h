// SPDX-License-Identifier: Apache-2.0
// Windows that slide over a map [N, C, H, W], along each dimension alone. With n places, pads b
// before and a after it, a window of k taps in steps of d covers e = d (k - 1) + 1 places, and
// window i begins at place i s - b. There are floor((n + b + a - e) / s) + 1 windows, in ceil mode
// ceil(...), of which one that begins after the last place of the map is dropped.
//   MaxPool  the largest value on the map
//   AvgPool  the sum of the values on the map over the number of taps on the map, or, with
//            count_include_pad, on the map and its pads; taps beyond the pads (ceil mode) never
//            count
// Source: the ONNX specification, MaxPool-22 and AveragePool-22. onnxruntime 1.31 and PyTorch
// compute the same.
#pragma once
#include "models/graph.h"

namespace zsq::models {

struct Sliding {  // along one dimension
  std::int64_t size, kernel, stride, before, after, dilation = 1;
  bool ceil_mode = false;
  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
};

// 0 if the window is larger than the map with its pads.
std::int64_t window_count(const Sliding& sliding);

// How many taps of each window count in an average.
std::vector<std::int64_t> tap_counts(const Sliding& sliding, bool count_include_pad);

// f32 or bf16 [N, C, H, W] -> [N, C, windows, windows]. Differentiable.
at::Tensor max_pool(const MaxPool& op, const at::Tensor& x);
at::Tensor average_pool(const AvgPool& op, const at::Tensor& x);

// Pad of any number of dimensions by a constant; in the other modes of height and width, where a
// reflected pad is smaller than the side and a wrapped one is no larger.
at::Tensor pad(const Pad& op, const at::Tensor& x);

}  // namespace zsq::models
