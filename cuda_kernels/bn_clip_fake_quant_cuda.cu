// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_fake_quant_twins.h"
#include "cuda_kernels/channel_sums.cuh"

namespace zsq::cuda_kernels {
namespace {

__device__ ClipGrid grid_of(const BnClipView& view) {
  return {view.lo, view.hi, *view.scale, *view.zero_point, view.range, view.clipped};
}

struct Forward {
  BnClipView view;
  ChannelOf channel;
  __device__ float operator()(std::int64_t i, float x, float) const {
    const std::int64_t c = channel(i);
    return clip_quant_value(affine(x, view.gain[c], view.offset[c]), grid_of(view));
  }
};

// Writes dx and adds du and du * (x - mean).
template <class T>
struct Backward {
  BnClipView view;
  const T *x, *dy;
  T* dx;
  __device__ void operator()(std::int64_t i, std::int64_t c, double* sums) const {
    const float u = load(x[i]);
    const bool passes = clip_quant_passes(affine(u, view.gain[c], view.offset[c]), grid_of(view));
    const float du = passes ? load(dy[i]) : 0.0f;
    store(dx[i], du * view.gain[c]);
    sums[0] += du;
    sums[1] += du * (u - view.mean[c]);
  }
};

}  // namespace

template <class T>
void bn_clip_fake_quant_cuda(const T* x, T* y, const BnClipView& view, cudaStream_t stream) {
  const ChannelLayout& layout = view.layout;
  const std::int64_t n = layout.outer * layout.channels * layout.inner;
  launch_map("bn_clip_fake_quant", x, x, y, n, Forward{view, {n, layout.channels, layout.inner}},
             stream);
}

template <class T>
void bn_clip_fake_quant_backward_cuda(const T* x, const T* dy, T* dx, double* sums, double* partial,
                                      const BnClipView& view, cudaStream_t stream) {
  launch_channel_sums<2>("bn_clip_fake_quant backward", view.layout, sums, partial,
                         Backward<T>{view, x, dy, dx}, stream);
}

template void bn_clip_fake_quant_cuda(const float*, float*, const BnClipView&, cudaStream_t);
template void bn_clip_fake_quant_backward_cuda(const float*, const float*, float*, double*, double*,
                                               const BnClipView&, cudaStream_t);
template void bn_clip_fake_quant_cuda(const Bf16*, Bf16*, const BnClipView&, cudaStream_t);
template void bn_clip_fake_quant_backward_cuda(const Bf16*, const Bf16*, Bf16*, double*, double*,
                                               const BnClipView&, cudaStream_t);

}  // namespace zsq::cuda_kernels
