// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of weight_range.h over raw memory.
#pragma once
#include <cstdint>
#include <vector>

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

// Both for one row, n >= 1.
ScaleZero row_grid_cpu(const float* x, std::int64_t n, CodeRange range, bool symmetric);

// Both for the rows of several layers: row r of x [rows, columns], columns >= 1, gives
// scale[first + r] and zero_point[first + r].
struct RowsView {
  const float* x;
  std::int64_t rows, columns;
  CodeRange range;
  bool symmetric;
  std::int64_t first;
};
void row_grids_cpu(const std::vector<RowsView>& layers, float* scale, float* zero_point);
// all_rows: of all layers together.
void row_grids_cuda(const std::vector<RowsView>& layers, std::int64_t all_rows, float* scale,
                    float* zero_point, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
