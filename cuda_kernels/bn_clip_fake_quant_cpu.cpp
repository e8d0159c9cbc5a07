// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_fake_quant_twins.h"
#include "cuda_kernels/cpu_channel_sums.h"

namespace zsq::cuda_kernels {
namespace {

ZSQ_VECTORIZED void forward_row(const float* __restrict x, float* __restrict y, std::int64_t n,
                                float gain, float offset, ClipGrid grid) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = clip_quant_value(affine(x[i], gain, offset), grid);
}

ZSQ_VECTORIZED void forward_pixel(const float* __restrict x, float* __restrict y,
                                  std::int64_t channels, const float* __restrict gain,
                                  const float* __restrict offset, ClipGrid grid) {
  for (std::int64_t c = 0; c < channels; ++c)
    y[c] = clip_quant_value(affine(x[c], gain[c], offset[c]), grid);
}

ZSQ_VECTORIZED void backward_row(const float* __restrict x, const float* __restrict dy,
                                 float* __restrict dx, std::int64_t n, float gain, float offset,
                                 float mean, ClipGrid grid, double* first, double* second) {
  double sum[kSumLanes] = {}, products[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int j = 0; j < kSumLanes; ++j) {
      const bool passes = clip_quant_passes(affine(x[i + j], gain, offset), grid);
      const float du = passes ? dy[i + j] : 0.0f;
      dx[i + j] = du * gain;
      sum[j] += du;
      products[j] += du * (x[i + j] - mean);
    }
  }
  for (; i < n; ++i) {
    const float du = clip_quant_passes(affine(x[i], gain, offset), grid) ? dy[i] : 0.0f;
    dx[i] = du * gain;
    sum[0] += du;
    products[0] += du * (x[i] - mean);
  }
  for (int j = 0; j < kSumLanes; ++j) {
    *first += sum[j];
    *second += products[j];
  }
}

ZSQ_VECTORIZED void backward_pixel(const float* __restrict x, const float* __restrict dy,
                                   float* __restrict dx, std::int64_t channels,
                                   const float* __restrict gain, const float* __restrict offset,
                                   const float* __restrict mean, ClipGrid grid,
                                   double* __restrict first, double* __restrict second) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float du = clip_quant_passes(affine(x[c], gain[c], offset[c]), grid) ? dy[c] : 0.0f;
    dx[c] = du * gain[c];
    first[c] += du;
    second[c] += du * (x[c] - mean[c]);
  }
}

ClipGrid grid_of(const BnClipView& view) {
  return {view.lo, view.hi, *view.scale, *view.zero_point, view.range, view.clipped};
}

}  // namespace

void bn_clip_fake_quant_cpu(const float* x, float* y, const BnClipView& view) {
  const ClipGrid grid = grid_of(view);
  for_each_channel_run(
      view.layout,
      [&](std::int64_t i, std::int64_t n, std::int64_t c) {
        forward_row(x + i, y + i, n, view.gain[c], view.offset[c], grid);
      },
      [&](std::int64_t i) {
        forward_pixel(x + i, y + i, view.layout.channels, view.gain, view.offset, grid);
      });
}

void bn_clip_fake_quant_backward_cpu(const float* x, const float* dy, float* dx, double* sums,
                                     const BnClipView& view) {
  const ClipGrid grid = grid_of(view);
  channel_sums(
      view.layout, sums,
      [&](std::int64_t i, std::int64_t n, std::int64_t c, double* first, double* second) {
        backward_row(x + i, dy + i, dx + i, n, view.gain[c], view.offset[c], view.mean[c], grid,
                     first, second);
      },
      [&](std::int64_t i, std::int64_t count, double* first, double* second) {
        const std::int64_t channels = view.layout.channels;
        for (std::int64_t p = i; p < i + count * channels; p += channels)
          backward_pixel(x + p, dy + p, dx + p, channels, view.gain, view.offset, view.mean, grid,
                         first, second);
      });
}

}  // namespace zsq::cuda_kernels
