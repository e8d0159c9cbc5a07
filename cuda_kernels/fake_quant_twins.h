// SPDX-License-Identifier: Apache-2.0
// Both twins of fake_quant.h over raw memory: n elements, scale and zero_point [channels], element
// i of channel (i / inner) % channels.
#pragma once
#include <cstdint>

#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {

struct GridView {
  const float* scale;
  const float* zero_point;
  std::int64_t channels, inner;
  CodeRange range;
};

void fake_quant_cpu(const float* x, float* y, std::int64_t n, const GridView& grid);
void fake_quant_cuda(const float* x, float* y, std::int64_t n, const GridView& grid,
                     cudaStream_t stream);

// dx = dy where the code of x was not clamped, else 0.
void fake_quant_backward_cpu(const float* x, const float* dy, float* dx, std::int64_t n,
                             const GridView& grid);
void fake_quant_backward_cuda(const float* x, const float* dy, float* dx, std::int64_t n,
                              const GridView& grid, cudaStream_t stream);

// NaN has no code: the CPU twin returns whether there was one, the CUDA twin sets *found_nan
// (device memory, zeroed by the caller) to 1.
bool quantize_cpu(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid);
void quantize_cuda(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid,
                   std::int32_t* found_nan, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
