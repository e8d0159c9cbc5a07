// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sysnoise/sign_test.h"

#include <algorithm>
#include <cmath>

namespace zsq::pipeline {

double sign_test(std::int64_t a, std::int64_t b) {
  const auto n = static_cast<double>(a + b);
  double tail = 0;
  for (std::int64_t i = 0; i <= std::min(a, b); ++i) {
    const auto k = static_cast<double>(i);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                     n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

}  // namespace zsq::pipeline
