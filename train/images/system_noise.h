// SPDX-License-Identifier: Apache-2.0
// What decoders and resizers of a deployment do to images (SysNoise, Wang et al., MLSys 2023), for
// the student to learn to live with.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "parallel/ranks.h"

namespace zsq::train {

// Values that pixels 0 and 255 have for the network, by channel, and the order of its channels.
struct PixelValues {
  std::array<double, 3> black{}, white{};
  bool bgr = false;
};

// f32 [N, 3, H, W] in pixels (0 to 255), red first, to NV12 and back: eval::through_nv12().
at::Tensor through_nv12(const at::Tensor& pixels);

class SystemNoise {
 public:
  // share: of the images of a batch, each by chance.
  SystemNoise(double share, const PixelValues& values, std::uint64_t seed)
      : share_(share), values_(values), seed_(seed) {}

  // f32 [N, 3, H, W], as the network takes them. The chosen images are enlarged by a factor in
  // [1.1, 2.5] (bicubic), come back by nearest, box, bilinear, bicubic or bilinear without
  // antialias, go through NV12 in half of the steps, and are rounded to 8 bits. Factor, filter and
  // NV12 are those of the step. Images are `rows` of a batch; depends on (seed, step, size of the
  // batch); no gradients.
  at::Tensor operator()(const at::Tensor& images, std::uint64_t step,
                        const parallel::Rows& rows) const;
  at::Tensor operator()(const at::Tensor& images, std::uint64_t step) const {
    return (*this)(images, step, {0, images.size(0), images.size(0)});
  }

 private:
  at::Tensor changed(const at::Tensor& images, std::uint64_t step) const;

  double share_;
  PixelValues values_;
  std::uint64_t seed_;
};

}  // namespace zsq::train
