// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_fake_quant_twins.h"
#include "cuda_kernels/cpu_channel_sums.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED void forward_row(const T* __restrict x, T* __restrict y, std::int64_t n, float gain,
                                float offset, ClipGrid grid) {
  for (std::int64_t i = 0; i < n; ++i)
    store(y[i], clip_quant_value(affine(load(x[i]), gain, offset), grid));
}

template <class T>
ZSQ_VECTORIZED void forward_pixel(const T* __restrict x, T* __restrict y, std::int64_t channels,
                                  const float* __restrict gain, const float* __restrict offset,
                                  ClipGrid grid) {
  for (std::int64_t c = 0; c < channels; ++c)
    store(y[c], clip_quant_value(affine(load(x[c]), gain[c], offset[c]), grid));
}

template <class T>
ZSQ_VECTORIZED void backward_row(const T* __restrict x, const T* __restrict dy, T* __restrict dx,
                                 std::int64_t n, float gain, float offset, float mean,
                                 ClipGrid grid, double* first, double* second) {
  double sum[kSumLanes] = {}, products[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int j = 0; j < kSumLanes; ++j) {
      const float u = load(x[i + j]);
      const float du = clip_quant_passes(affine(u, gain, offset), grid) ? load(dy[i + j]) : 0.0f;
      store(dx[i + j], du * gain);
      sum[j] += du;
      products[j] += du * (u - mean);
    }
  }
  for (; i < n; ++i) {
    const float u = load(x[i]);
    const float du = clip_quant_passes(affine(u, gain, offset), grid) ? load(dy[i]) : 0.0f;
    store(dx[i], du * gain);
    sum[0] += du;
    products[0] += du * (u - mean);
  }
  for (int j = 0; j < kSumLanes; ++j) {
    *first += sum[j];
    *second += products[j];
  }
}

template <class T>
ZSQ_VECTORIZED void backward_pixel(const T* __restrict x, const T* __restrict dy, T* __restrict dx,
                                   std::int64_t channels, const float* __restrict gain,
                                   const float* __restrict offset, const float* __restrict mean,
                                   ClipGrid grid, double* __restrict first,
                                   double* __restrict second) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float u = load(x[c]);
    const float du = clip_quant_passes(affine(u, gain[c], offset[c]), grid) ? load(dy[c]) : 0.0f;
    store(dx[c], du * gain[c]);
    first[c] += du;
    second[c] += du * (u - mean[c]);
  }
}

ClipGrid grid_of(const BnClipView& view) {
  return {view.lo, view.hi, *view.scale, *view.zero_point, view.range, view.clipped};
}

}  // namespace

template <class T>
void bn_clip_fake_quant_cpu(const T* x, T* y, const BnClipView& view) {
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

template <class T>
void bn_clip_fake_quant_backward_cpu(const T* x, const T* dy, T* dx, double* sums,
                                     const BnClipView& view) {
  const ClipGrid grid = grid_of(view);
  const std::int64_t channels = view.layout.channels;
  channel_sums<2>(
      view.layout, sums,
      [&](std::int64_t i, std::int64_t n, std::int64_t c, double* own) {
        backward_row(x + i, dy + i, dx + i, n, view.gain[c], view.offset[c], view.mean[c], grid,
                     own + c, own + channels + c);
      },
      [&](std::int64_t i, std::int64_t count, double* own) {
        for (std::int64_t p = i; p < i + count * channels; p += channels)
          backward_pixel(x + p, dy + p, dx + p, channels, view.gain, view.offset, view.mean, grid,
                         own, own + channels);
      });
}

template void bn_clip_fake_quant_cpu(const float*, float*, const BnClipView&);
template void bn_clip_fake_quant_backward_cpu(const float*, const float*, float*, double*,
                                              const BnClipView&);
template void bn_clip_fake_quant_cpu(const Bf16*, Bf16*, const BnClipView&);
template void bn_clip_fake_quant_backward_cpu(const Bf16*, const Bf16*, Bf16*, double*,
                                              const BnClipView&);

}  // namespace zsq::cuda_kernels
