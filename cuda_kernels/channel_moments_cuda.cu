// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_moments_implementations.h"
#include "cuda_kernels/channel_sums.cuh"
#include "cuda_kernels/map.cuh"

namespace zsq::cuda_kernels {
namespace {

struct Moments {
  const float* shift;
  using Channel = float;
  __device__ Channel channel(std::int64_t c) const { return shift[c]; }
  __device__ void operator()(Channel center, const float* in, float*, float* sums) const {
    const float distance = in[0] - center;
    sums[0] += distance;
    sums[1] += distance * distance;
  }
};

struct Backward {
  const float *mean, *a, *b;
  struct Channel {
    float mean, a, b;
  };
  __device__ Channel channel(std::int64_t c) const { return {mean[c], a[c], b[c]}; }
  __device__ void operator()(const Channel& n, const float* in, float* out) const {
    out[0] = n.a + n.b * (in[0] - n.mean);
  }
};

__global__ void moments_kernel(const double* sums, const float* shift, double count,
                               std::int64_t channels, float* mean, float* variance) {
  for (std::int64_t c = first_index(); c < channels; c += index_stride()) {
    const double distance = sums[c] / count;
    const double found = sums[channels + c] / count - distance * distance;
    mean[c] = static_cast<float>(distance + shift[c]);
    variance[c] = static_cast<float>(found < 0 ? 0 : found);  // NaN stays NaN
  }
}

}  // namespace

void moments_of_sums_cuda(const double* sums, const float* shift, double count,
                          std::int64_t channels, float* mean, float* variance,
                          cudaStream_t stream) {
  launch("moments_of_sums", moments_kernel, blocks_for(channels), stream, sums, shift, count,
         channels, mean, variance);
}

template <class T>
void channel_moment_sums_cuda(const T* x, const float* shift, double* sums, double* partial,
                              ChannelLayout layout, cudaStream_t stream) {
  launch_channel_sums<2>("channel_moments", Streams<T, 1, 1>{{x}, {nullptr}}, layout, sums, partial,
                         Moments{shift}, stream);
}

template <class T>
void channel_moments_backward_cuda(const T* x, const float* mean, const float* a, const float* b,
                                   T* dx, ChannelLayout layout, cudaStream_t stream) {
  launch_map("channel_moments backward", Streams<T, 1, 1>{{x}, {dx}}, layout, Backward{mean, a, b},
             stream);
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
