// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/TensorOperators.h>

#include <utility>

namespace zsq::cuda_kernels {

// Of x [N, C, ...].
inline double elements_per_channel(const at::Tensor& x) {
  const std::int64_t count = x.numel() / x.size(1);
  return static_cast<double>(count);
}

// Mean and biased variance [C] f32 of `count` elements per channel, from sums [2, C] f64 over
// (x - shift) and (x - shift)^2.
inline std::pair<at::Tensor, at::Tensor> moments_of_sums(const at::Tensor& sums,
                                                         const at::Tensor& shift, double count) {
  const at::Tensor averages = sums / count, distance = averages[0];
  return {(distance + shift).to(at::kFloat),
          (averages[1] - distance * distance).clamp_min_(0).to(at::kFloat)};
}

}  // namespace zsq::cuda_kernels
