// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_moments_implementations.h"
#include "cuda_kernels/channel_sums.cuh"

namespace zsq::cuda_kernels {
namespace {

template <class T>
struct Moments {
  const T* x;
  const float* shift;
  __device__ void operator()(std::int64_t i, std::int64_t c, double* sums) const {
    const float distance = load(x[i]) - shift[c];
    sums[0] += distance;
    sums[1] += distance * distance;
  }
};

struct Backward {
  const float *mean, *a, *b;
  ChannelOf channel;
  __device__ float operator()(std::int64_t i, float x, float) const {
    const std::int64_t c = channel(i);
    return a[c] + b[c] * (x - mean[c]);
  }
};

}  // namespace

template <class T>
void channel_moment_sums_cuda(const T* x, const float* shift, double* sums, double* partial,
                              ChannelLayout layout, cudaStream_t stream) {
  launch_channel_sums<2>("channel_moments", layout, sums, partial, Moments<T>{x, shift}, stream);
}

template <class T>
void channel_moments_backward_cuda(const T* x, const float* mean, const float* a, const float* b,
                                   T* dx, ChannelLayout layout, cudaStream_t stream) {
  const std::int64_t n = layout.outer * layout.channels * layout.inner;
  launch_map("channel_moments backward", x, x, dx, n,
             Backward{mean, a, b, {n, layout.channels, layout.inner}}, stream);
}

template void channel_moment_sums_cuda(const float*, const float*, double*, double*, ChannelLayout,
                                       cudaStream_t);
template void channel_moments_backward_cuda(const float*, const float*, const float*, const float*,
                                            float*, ChannelLayout, cudaStream_t);
template void channel_moment_sums_cuda(const Bf16*, const float*, double*, double*, ChannelLayout,
                                       cudaStream_t);
template void channel_moments_backward_cuda(const Bf16*, const float*, const float*, const float*,
                                            Bf16*, ChannelLayout, cudaStream_t);

}  // namespace zsq::cuda_kernels
