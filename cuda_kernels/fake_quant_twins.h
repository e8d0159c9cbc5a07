// SPDX-License-Identifier: Apache-2.0
// Both twins of fake_quant.h over raw memory: n elements, scale and zero_point [channels], element
// i of channel (i / inner) % channels. T is float or Bf16.
#pragma once
#include <cstdint>

#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

struct GridView {
  const float* scale;
  const float* zero_point;
  std::int64_t channels, inner;
  CodeRange range;
};

template <class T>
void fake_quant_cpu(const T* x, T* y, std::int64_t n, const GridView& grid);
template <class T>
void fake_quant_cuda(const T* x, T* y, std::int64_t n, const GridView& grid, cudaStream_t stream);

// dx = dy where the code of x was not clamped, else 0.
template <class T>
void fake_quant_backward_cpu(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid);
template <class T>
void fake_quant_backward_cuda(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid,
                              cudaStream_t stream);

// NaN has no code: the CPU twin returns whether there was one, the CUDA twin sets *found_nan
// (device memory, zeroed by the caller) to 1.
bool quantize_cpu(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid);
void quantize_cuda(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid,
                   std::int32_t* found_nan, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
