// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_sums.cuh"
#include "cuda_kernels/scale_gradient_implementations.h"

namespace zsq::cuda_kernels {
namespace {

struct Slopes {
  ScaleGradientView view;
  using Channel = UniformGrid;
  __device__ Channel channel(std::int64_t c) const {
    return {view.scale[c], view.zero_point[c], view.range};
  }
  __device__ void operator()(const Channel& grid, const float* in, float* out, float* sums) const {
    const float v = in[0], above = in[1];
    sums[0] += above * grid.scale_slope(v);
    out[0] = grid.contains(v) ? above : 0.0f;
  }
};

}  // namespace

template <class T>
void scale_gradient_cuda(const T* x, const T* dy, T* dx, double* sums, double* partial,
                         const ScaleGradientView& view, cudaStream_t stream) {
  launch_channel_sums<1>("scale_gradient", Streams<T, 2, 1>{{x, dy}, {dx}}, view.layout, sums,
                         partial, Slopes{view}, stream);
}

template void scale_gradient_cuda(const float*, const float*, float*, double*, double*,
                                  const ScaleGradientView&, cudaStream_t);
template void scale_gradient_cuda(const Bf16*, const Bf16*, Bf16*, double*, double*,
                                  const ScaleGradientView&, cudaStream_t);

}  // namespace zsq::cuda_kernels
