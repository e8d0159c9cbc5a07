// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/weight_range_twins.h"

namespace zsq::cuda_kernels {
namespace {

constexpr int kLanes = 64;

// Minimum and maximum of a run, n >= 1; NaN where the run holds one. The lanes make the order of
// the comparisons explicit, so the compiler may use vectors.
ZSQ_VECTORIZED void run_min_max(const float* x, std::int64_t n, float* lo_out, float* hi_out) {
  float lo[kLanes], hi[kLanes];
  std::int32_t nan[kLanes] = {};
  for (int j = 0; j < kLanes; ++j) lo[j] = hi[j] = x[0];
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const float v = x[i + j];
      lo[j] = v < lo[j] ? v : lo[j];
      hi[j] = v > hi[j] ? v : hi[j];
      nan[j] |= v != v;
    }
  }
  for (; i < n; ++i) {
    lo[0] = x[i] < lo[0] ? x[i] : lo[0];
    hi[0] = x[i] > hi[0] ? x[i] : hi[0];
    nan[0] |= x[i] != x[i];
  }
  for (int j = 1; j < kLanes; ++j) {
    lo[0] = lo[j] < lo[0] ? lo[j] : lo[0];
    hi[0] = hi[j] > hi[0] ? hi[j] : hi[0];
    nan[0] |= nan[j];
  }
  *lo_out = nan[0] ? kNan : lo[0];
  *hi_out = nan[0] ? kNan : hi[0];
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

void row_grids_cpu(const std::vector<RowsView>& layers, float* scale, float* zero_point) {
  // By elements, so that threads have the same work: a row is of the thread that has its begin.
  std::vector<std::int64_t> sizes;
  for (const RowsView& layer : layers) sizes.push_back(layer.rows * layer.columns);
  share_layers(sizes, kGrain, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    const RowsView& layer = layers[i];
    const auto row_at = [&](std::int64_t element) {
      return (element + layer.columns - 1) / layer.columns;
    };
    for (std::int64_t row = row_at(begin); row < row_at(end); ++row) {
      float lo, hi;
      run_min_max(layer.x + row * layer.columns, layer.columns, &lo, &hi);
      const ScaleZero grid = grid_of_range(lo, hi, layer.range, layer.symmetric);
      scale[layer.first + row] = grid.scale;
      zero_point[layer.first + row] = grid.zero_point;
    }
  });
}

}  // namespace zsq::cuda_kernels
