// SPDX-License-Identifier: Apache-2.0
// The sums of image_conv on the CPU. Tap k of output position o lies on pixel i = stride o + k -
// padding of the image, in both dimensions.
#pragma once
#include <cstdint>

#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

// taps [channels, kernel, kernel, images, rows, columns]; image f32 [images, height, width,
// channels].
struct TapSizes {
  std::int64_t channels, kernel, stride, padding;
  std::int64_t images, rows, columns;
  std::int64_t height, width;
};

// image_i = bias + the sum of all taps that lie on pixel i; bias [channels] or null.
template <class T>
void fold_taps(const T* taps, const TapSizes& sizes, const float* bias, float* image);

// The adjoint at stride 1: each tap is the pixel that it lies on, 0 outside of the image.
template <class T>
void unfold_taps(const float* image, const TapSizes& sizes, T* taps);

}  // namespace zsq::cuda_kernels
