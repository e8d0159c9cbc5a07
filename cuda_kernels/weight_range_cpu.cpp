// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/weight_range_implementations.h"

namespace zsq::cuda_kernels {
namespace {

// Minimum and maximum of a run, n >= 1; NaN if the run holds one.
ZSQ_VECTORIZED void run_min_max(const float* x, std::int64_t n, float* lo_out, float* hi_out) {
  float lo = x[0], hi = x[0];
  std::int32_t nan = 0;
#pragma omp simd reduction(min : lo) reduction(max : hi) reduction(| : nan)
  for (std::int64_t i = 0; i < n; ++i) {
    lo = x[i] < lo ? x[i] : lo;
    hi = x[i] > hi ? x[i] : hi;
    nan |= x[i] != x[i];
  }
  *lo_out = nan ? kNan : lo;
  *hi_out = nan ? kNan : hi;
}

}  // namespace

void row_min_max_cpu(const float* x, std::int64_t rows, std::int64_t columns, float* lo,
                     float* hi) {
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / columns);
  at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      run_min_max(x + r * columns, columns, lo + r, hi + r);
  });
}

void grid_from_range_cpu(const float* lo, const float* hi, std::int64_t n, CodeRange range,
                         bool symmetric, float* scale, float* zero_point) {
  for (std::int64_t i = 0; i < n; ++i) {
    const ScaleZero grid = grid_of_range(lo[i], hi[i], range, symmetric);
    scale[i] = grid.scale;
    zero_point[i] = grid.zero_point;
  }
}

ScaleZero row_grid_cpu(const float* x, std::int64_t n, CodeRange range, bool symmetric) {
  float lo, hi;
  run_min_max(x, n, &lo, &hi);
  return grid_of_range(lo, hi, range, symmetric);
}

void row_grids_cpu(const std::vector<RowsView>& layers, float* scale, float* zero_point) {
  std::vector<std::int64_t> sizes;
  for (const RowsView& layer : layers) sizes.push_back(layer.rows * layer.columns);
  share_layers(sizes, kGrain, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    const RowsView& layer = layers[i];
    for_each_begun_row(begin, end, layer.columns, [&](std::int64_t row) {
      const ScaleZero grid =
          row_grid_cpu(layer.x + row * layer.columns, layer.columns, layer.range, layer.symmetric);
      scale[layer.first + row] = grid.scale;
      zero_point[layer.first + row] = grid.zero_point;
    });
  });
}

}  // namespace zsq::cuda_kernels
