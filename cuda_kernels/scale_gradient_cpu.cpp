// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_lanes.h"
#include "cuda_kernels/scale_gradient_twins.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED void sum_rows(const T* __restrict x, const T* __restrict dy, LaneRows<2> rows,
                             CodeRange range) {
  const float* __restrict scale = rows.params[0], * __restrict zero_point = rows.params[1];
  float* __restrict sums = rows.sums;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const std::int64_t begin = rows.offset + row * rows.width;
    for (std::int64_t j = 0; j < rows.width; ++j)
      sums[j] +=
          load(dy[begin + j]) * scale_slope(load(x[begin + j]), scale[j], zero_point[j], range);
  }
}

}  // namespace

template <class T>
void scale_gradient_cpu(const T* x, const T* dy, double* sums, const ScaleGradientView& view) {
  for_each_lane<1>(view.layout, std::array{view.scale, view.zero_point}, sums,
                   [&](const LaneRows<2>& rows) { sum_rows(x, dy, rows, view.range); });
}

template void scale_gradient_cpu(const float*, const float*, double*, const ScaleGradientView&);
template void scale_gradient_cpu(const Bf16*, const Bf16*, double*, const ScaleGradientView&);

}  // namespace zsq::cuda_kernels
