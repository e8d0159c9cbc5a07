// SPDX-License-Identifier: Apache-2.0
// Both twins of weight_range.h over raw memory.
#pragma once
#include <cstdint>

#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {

// x [rows, columns] row-major, columns >= 1.
void row_min_max_cpu(const float* x, std::int64_t rows, std::int64_t columns, float* lo, float* hi);
void row_min_max_cuda(const float* x, std::int64_t rows, std::int64_t columns, float* lo, float* hi,
                      cudaStream_t stream);

void grid_from_range_cpu(const float* lo, const float* hi, std::int64_t n, CodeRange range,
                         bool symmetric, float* scale, float* zero_point);
void grid_from_range_cuda(const float* lo, const float* hi, std::int64_t n, CodeRange range,
                          bool symmetric, float* scale, float* zero_point, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
