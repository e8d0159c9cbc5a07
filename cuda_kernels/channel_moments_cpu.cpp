// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_lanes.h"
#include "cuda_kernels/channel_moments_twins.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED void sum_rows(const T* __restrict x, LaneRows<1> rows) {
  const float* __restrict shift = rows.params[0];
  float* __restrict first = rows.sums, * __restrict second = rows.sums + rows.stride;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const T* __restrict at = x + rows.offset + row * rows.width;
    for (std::int64_t j = 0; j < rows.width; ++j) {
      const float distance = load(at[j]) - shift[j];
      first[j] += distance;
      second[j] += distance * distance;
    }
  }
}

template <class T>
ZSQ_VECTORIZED void backward_rows(const T* __restrict x, T* __restrict dx, LaneRows<3> rows) {
  const float* __restrict mean = rows.params[0], * __restrict a = rows.params[1], * __restrict b = rows.params[2];
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const std::int64_t begin = rows.offset + row * rows.width;
    for (std::int64_t j = 0; j < rows.width; ++j)
      store(dx[begin + j], a[j] + b[j] * (load(x[begin + j]) - mean[j]));
  }
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
