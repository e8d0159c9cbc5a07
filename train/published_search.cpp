// SPDX-License-Identifier: Apache-2.0
#include "train/published_search.h"

#include <cmath>

namespace zsq::train {

double published_factor(const std::function<double(double)>& share, double target) {
  constexpr double kHopeless = 0x1p60;
  constexpr int kBisections = 5;
  double k = 1;
  if (share(k) >= target) return k;
  do {
    k *= 2;
    if (k > kHopeless) return 1;
  } while (share(k) < target);
  double below = k / 2, above = k;
  for (int i = 0; i < kBisections; ++i) {
    k = (below + above) / 2;
    const double reached = share(k);
    if (std::abs(reached - target) < target / 100) break;
    (reached < target ? below : above) = k;
  }
  return k;
}

}  // namespace zsq::train
