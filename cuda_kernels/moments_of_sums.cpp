// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/moments_of_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>

#include "cuda_kernels/channel_moments_implementations.h"
#include "cuda_kernels/cuda_scope.h"

namespace zsq::cuda_kernels {

std::pair<at::Tensor, at::Tensor> moments_of_sums(const at::Tensor& sums, const at::Tensor& shift,
                                                  double count) {
  if (sums.is_cuda()) {
    const CudaScope cuda("moments_of_sums", sums.device());
    const at::Tensor mean = at::empty_like(shift), variance = at::empty_like(shift);
    if constexpr (kHasCuda)
      moments_of_sums_cuda(sums.const_data_ptr<double>(), shift.const_data_ptr<float>(), count,
                           shift.numel(), mean.mutable_data_ptr<float>(),
                           variance.mutable_data_ptr<float>(), cuda.stream());
    return {mean, variance};
  }
  const at::Tensor averages = sums / count, distance = averages[0];
  return {(distance + shift).to(at::kFloat),
          (averages[1] - distance * distance).clamp_min_(0).to(at::kFloat)};
}

}  // namespace zsq::cuda_kernels
