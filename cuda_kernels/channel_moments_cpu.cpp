// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_lanes.h"
#include "cuda_kernels/channel_moments_implementations.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED void sum_rows(const T* x, LaneRows<1> rows) {
  const float* shift = rows.params[0];
  for_each_element<2>(rows, [=](std::int64_t i, std::int64_t j, float* sums) ZSQ_INLINED_LAMBDA {
    const float distance = load(x[i]) - shift[j];
    sums[0] += distance;
    sums[1] += distance * distance;
  });
}

template <class T>
ZSQ_VECTORIZED void backward_rows(const T* x, T* dx, LaneRows<3> rows) {
  const float *mean = rows.params[0], *a = rows.params[1], *b = rows.params[2];
  for_each_element<0>(rows, [=](std::int64_t i, std::int64_t j, float*) ZSQ_INLINED_LAMBDA {
    store(dx[i], a[j] + b[j] * (load(x[i]) - mean[j]));
  });
}

}  // namespace

template <class T>
void channel_moment_sums_cpu(const T* x, const float* shift, double* sums, ChannelLayout layout) {
  for_each_lane<2>(layout, std::array{shift}, sums,
                   [&](const LaneRows<1>& rows) { sum_rows(x, rows); });
}

template <class T>
void channel_moments_backward_cpu(const T* x, const float* mean, const float* a, const float* b,
                                  T* dx, ChannelLayout layout) {
  for_each_lane<0>(layout, std::array{mean, a, b}, nullptr,
                   [&](const LaneRows<3>& rows) { backward_rows(x, dx, rows); });
}

template void channel_moment_sums_cpu(const float*, const float*, double*, ChannelLayout);
template void channel_moments_backward_cpu(const float*, const float*, const float*, const float*,
                                           float*, ChannelLayout);
template void channel_moment_sums_cpu(const Bf16*, const float*, double*, ChannelLayout);
template void channel_moments_backward_cpu(const Bf16*, const float*, const float*, const float*,
                                           Bf16*, ChannelLayout);

}  // namespace zsq::cuda_kernels
