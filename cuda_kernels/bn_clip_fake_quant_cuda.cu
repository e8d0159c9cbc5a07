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
struct Backward {
  BnClipView view;
  const float *x, *dy;
  float* dx;
  __device__ void operator()(std::int64_t i, std::int64_t c, double& sum, double& products) const {
    const bool passes =
        clip_quant_passes(affine(x[i], view.gain[c], view.offset[c]), grid_of(view));
    const float du = passes ? dy[i] : 0.0f;
    dx[i] = du * view.gain[c];
    sum += du;
    products += du * (x[i] - view.mean[c]);
  }
};

}  // namespace

void bn_clip_fake_quant_cuda(const float* x, float* y, const BnClipView& view,
                             cudaStream_t stream) {
  const ChannelLayout& layout = view.layout;
  const std::int64_t n = layout.outer * layout.channels * layout.inner;
  launch_map("bn_clip_fake_quant", x, x, y, n, Forward{view, {n, layout.channels, layout.inner}},
             stream);
}

void bn_clip_fake_quant_backward_cuda(const float* x, const float* dy, float* dx, double* sums,
                                      double* partial, const BnClipView& view,
                                      cudaStream_t stream) {
  launch_channel_sums("bn_clip_fake_quant backward", view.layout, sums, partial,
                      Backward{view, x, dy, dx}, stream);
}

}  // namespace zsq::cuda_kernels
