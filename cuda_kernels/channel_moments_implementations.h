// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of channel_moments.h over raw memory, at least one element
// per channel; T is float or Bf16.
#pragma once
#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

// sums [2, C]: per channel the sums over (x - shift) and (x - shift)^2. With a shift [C] near
// the mean the variance that follows keeps its digits, wherever the mean is.
template <class T>
void channel_moment_sums_cpu(const T* x, const float* shift, double* sums, ChannelLayout layout);
// `partial` is scratch for channel_sums_scratch(layout) doubles.
template <class T>
void channel_moment_sums_cuda(const T* x, const float* shift, double* sums, double* partial,
                              ChannelLayout layout, cudaStream_t stream);

// mean and variance [C] of `count` elements per channel from these sums; a launch in place of the
// dozen that tensor operators take.
void moments_of_sums_cuda(const double* sums, const float* shift, double count,
                          std::int64_t channels, float* mean, float* variance, cudaStream_t stream);

// dx = a_c + b_c (x - mean_c)
template <class T>
void channel_moments_backward_cpu(const T* x, const float* mean, const float* a, const float* b,
                                  T* dx, ChannelLayout layout);
template <class T>
void channel_moments_backward_cuda(const T* x, const float* mean, const float* a, const float* b,
                                   T* dx, ChannelLayout layout, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
