// SPDX-License-Identifier: Apache-2.0
#include "train/images/image_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zsq::train {

double ImageRate::at(std::int64_t step) const {
  switch (options_.schedule) {
    case RateSchedule::plateau:
      return plateau_;
    case RateSchedule::cosine: {
      const double share = static_cast<double>(step) / static_cast<double>(options_.steps);
      return options_.lr * (1 + std::cos(std::numbers::pi * share)) / 2;
    }
    case RateSchedule::constant:
      break;
  }
  return options_.lr;
}

void ImageRate::saw(double loss) {
  constexpr double kFallen = 1 - 1e-4, kDrop = 0.1, kSmallest = 1e-4;
  if (loss < best_ * kFallen) {
    best_ = loss;
    since_best_ = 0;
  } else if (++since_best_ > std::max<std::int64_t>(10, options_.steps / 20)) {
    plateau_ = std::max(plateau_ * kDrop, std::min(kSmallest, options_.lr));
    since_best_ = 0;
  }
}

}  // namespace zsq::train
