// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>

namespace zsq::cuda_kernels {

// Of x [N, C, ...].
inline double elements_per_channel(const at::Tensor& x) {
  const std::int64_t count = x.numel() / x.size(1);
  return static_cast<double>(count);
}

// Mean and biased variance [C] f32 of `count` elements per channel, from sums [2, C] f64 over
// (x - shift) and (x - shift)^2; shift [C] f32, contiguous.
std::pair<at::Tensor, at::Tensor> moments_of_sums(const at::Tensor& sums, const at::Tensor& shift,
                                                  double count);

}  // namespace zsq::cuda_kernels
