// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of scale_gradient.h over raw memory, at least one element; T
// is float or Bf16.
#pragma once
#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

// scale and zero_point hold a value for each channel of the layout; one grid is one channel.
struct ScaleGradientView {
  ChannelLayout layout;
  const float *scale, *zero_point;
  CodeRange range;
};

// sums [C]: per channel the sum over dy * dy/dscale. Unless dx is null, dx = dy where the code of x
// was not clamped, else 0.
template <class T>
void scale_gradient_cpu(const T* x, const T* dy, T* dx, double* sums,
                        const ScaleGradientView& view);
// `partial` is scratch for channel_sums_scratch(view.layout) doubles.
template <class T>
void scale_gradient_cuda(const T* x, const T* dy, T* dx, double* sums, double* partial,
                         const ScaleGradientView& view, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
