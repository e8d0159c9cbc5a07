// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_lanes.h"
#include "cuda_kernels/scale_gradient_implementations.h"

namespace zsq::cuda_kernels {
namespace {

template <bool kWrites, class T>
ZSQ_VECTORIZED void backward_rows(const T* x, const T* dy, T* dx, LaneRows<2> rows,
                                  CodeRange range) {
  const float *scale = rows.params[0], *zero_point = rows.params[1];
  for_each_element<1>(rows, [=](std::int64_t i, std::int64_t j, float* sums) ZSQ_INLINED_LAMBDA {
    const float v = load(x[i]), above = load(dy[i]);
    const UniformGrid grid{scale[j], zero_point[j], range};
    sums[0] += above * grid.scale_slope(v);
    if constexpr (kWrites) store(dx[i], grid.contains(v) ? above : 0.0f);
  });
}

}  // namespace

template <class T>
void scale_gradient_cpu(const T* x, const T* dy, T* dx, double* sums,
                        const ScaleGradientView& view) {
  for_each_lane<1>(view.layout, std::array{view.scale, view.zero_point}, sums,
                   [&](const LaneRows<2>& rows) {
                     dx ? backward_rows<true>(x, dy, dx, rows, view.range)
                        : backward_rows<false>(x, dy, dx, rows, view.range);
                   });
}

template void scale_gradient_cpu(const float*, const float*, float*, double*,
                                 const ScaleGradientView&);
template void scale_gradient_cpu(const Bf16*, const Bf16*, Bf16*, double*,
                                 const ScaleGradientView&);

}  // namespace zsq::cuda_kernels
