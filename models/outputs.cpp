// SPDX-License-Identifier: Apache-2.0
#include "models/outputs.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace zsq::models {

std::int64_t Output::length() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool Output::has_places() const {
  return std::ranges::count_if(shape, [](std::int64_t size) { return size != 1; }) > 1;
}

}  // namespace zsq::models
