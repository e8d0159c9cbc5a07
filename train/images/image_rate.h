// SPDX-License-Identifier: Apache-2.0
// The learning rate of the pixels, step by step.
#pragma once
#include <limits>

#include "generator/image_options.h"

namespace zsq::train {

// cosine: lr (1 + cos(pi step / steps)) / 2. plateau: lr, a tenth of it from where the loss has not
// fallen by 0.01 % for steps / 20 steps (10 at least), and so on, down to 1e-4 at least.
class ImageRate {
 public:
  explicit ImageRate(const ImageOptions& options) : options_(options), plateau_(options.lr) {}

  double at(std::int64_t step) const;
  void saw(double loss);  // after each step

 private:
  ImageOptions options_;
  double plateau_, best_ = std::numeric_limits<double>::infinity();
  std::int64_t since_best_ = 0;
};

}  // namespace zsq::train
