// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_sums.cuh"
#include "cuda_kernels/scale_gradient_twins.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
struct Slopes {
  const T *x, *dy;
  ScaleGradientView view;
  __device__ void operator()(std::int64_t i, std::int64_t c, double* sums) const {
    const std::int64_t g = view.per_channel ? c : 0;
    sums[0] += load(dy[i]) * scale_slope(load(x[i]), view.scale[g], view.zero_point[g], view.range);
  }
};

}  // namespace

template <class T>
void scale_gradient_cuda(const T* x, const T* dy, double* sums, double* partial,
                         const ScaleGradientView& view, cudaStream_t stream) {
  launch_channel_sums<1>("scale_gradient", view.layout, sums, partial, Slopes<T>{x, dy, view},
                         stream);
}

template void scale_gradient_cuda(const float*, const float*, double*, double*,
                                  const ScaleGradientView&, cudaStream_t);
template void scale_gradient_cuda(const Bf16*, const Bf16*, double*, double*,
                                  const ScaleGradientView&, cudaStream_t);

}  // namespace zsq::cuda_kernels
