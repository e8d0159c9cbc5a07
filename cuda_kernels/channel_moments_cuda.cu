// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_moments_twins.h"
#include "cuda_kernels/channel_sums.cuh"

namespace zsq::cuda_kernels {
namespace {

struct Moments {
  const float* x;
  __device__ void operator()(std::int64_t i, std::int64_t, double& sum, double& squares) const {
    const double v = x[i];
    sum += v;
    squares += v * v;
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

void channel_moment_sums_cuda(const float* x, double* sums, double* partial, ChannelLayout layout,
                              cudaStream_t stream) {
  launch_channel_sums("channel_moments", layout, sums, partial, Moments{x}, stream);
}

void channel_moments_backward_cuda(const float* x, const float* mean, const float* a,
                                   const float* b, float* dx, ChannelLayout layout,
                                   cudaStream_t stream) {
  const std::int64_t n = layout.outer * layout.channels * layout.inner;
  launch_map("channel_moments backward", x, x, dx, n,
             Backward{mean, a, b, {n, layout.channels, layout.inner}}, stream);
}

}  // namespace zsq::cuda_kernels
