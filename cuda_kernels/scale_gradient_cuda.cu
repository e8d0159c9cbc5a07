// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_sums.cuh"
#include "cuda_kernels/scale_gradient_implementations.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
struct Slopes {
  const T *x, *dy;
  T* dx;
  ScaleGradientView view;
  __device__ void operator()(std::int64_t i, std::int64_t c, double* sums) const {
    const float v = load(x[i]), above = load(dy[i]);
    const UniformGrid grid{view.scale[c], view.zero_point[c], view.range};
    sums[0] += above * grid.scale_slope(v);
    if (dx) store(dx[i], grid.contains(v) ? above : 0.0f);
  }
};

}  // namespace

template <class T>
void scale_gradient_cuda(const T* x, const T* dy, T* dx, double* sums, double* partial,
                         const ScaleGradientView& view, cudaStream_t stream) {
  launch_channel_sums<1>("scale_gradient", view.layout, sums, partial, Slopes<T>{x, dy, dx, view},
                         stream);
}

template void scale_gradient_cuda(const float*, const float*, float*, double*, double*,
                                  const ScaleGradientView&, cudaStream_t);
template void scale_gradient_cuda(const Bf16*, const Bf16*, Bf16*, double*, double*,
                                  const ScaleGradientView&, cudaStream_t);

}  // namespace zsq::cuda_kernels
