// SPDX-License-Identifier: Apache-2.0
// Maps of images. The linear ones are one small matrix per side, y = R x C^T for every channel, so
// they are differentiable, and the same on every run of a GPU.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "generator/image_options.h"

namespace zsq::generator {

// The part of each image that fills the frame: f32 [N], in pixels, and whether it is mirrored.
struct Crops {
  at::Tensor top, left, height, width;
  at::Tensor flip;  // bool [N]

  Crops rows(std::int64_t first, std::int64_t count) const;
};

// Random-resized-crop: of each image with probability augment_share, an area uniform in
// [0.5, 1] of the image with log-uniform aspect ratio in [3/4, 4/3] (sides longer than the
// image are cut to it), at a uniform place that need not be a whole pixel; half of them mirrored
// where options.flip is set. The rest are the whole image.
Crops draw_crops(std::int64_t n, std::int64_t height, std::int64_t width,
                 const ImageOptions& options, const at::Generator& stream);

// [N, C, H, W] -> the same shape, bilinear, pixel centres at halves, edges of the image repeated.
// `images` itself where all crops are whole.
at::Tensor augment(const at::Tensor& images, const Crops& crops);

// The weights w of another image in x + w (other - x), for n images: f32 [n, 1, height, width], or
// [n, 1, 1, 1] where cutmix_share is 0. With lambda uniform in [0, 1), a weight is
//   lambda everywhere, with probability mixup_share (mixup, arXiv 1710.09412, alpha = 1), or
//   1 at pixels whose centres lie in a rectangle of the image's shape and lambda times its area, at
//   a uniform place within it, otherwise 0, with probability cutmix_share (CutMix, arXiv
//   1905.04899, alpha = 1; but mixup comes first where the two add up to more than 1), or 0.
at::Tensor draw_mixture(std::int64_t n, std::int64_t height, std::int64_t width,
                        const ImageOptions& options, const at::Generator& stream);

// Multiplies the discrete Fourier transform of each channel by exp(-(u^2 + v^2) / (2 cutoff^2)),
// frequencies u, v in periods per image (SynQ, ICLR 2025).
at::Tensor low_pass(const at::Tensor& images, double cutoff);

// [N, C, H, W]: each image with a square of it, of side sqrt(1/2) min(H, W) and at a random place,
// from the next one, the last with one from the first (CutMix, arXiv 1905.04899).
at::Tensor cutmix(const at::Tensor& images, std::uint64_t seed);

}  // namespace zsq::generator
