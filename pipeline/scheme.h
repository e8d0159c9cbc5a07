// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace zsq {

// Bits of weights and activations, 2 to 8 each.
struct Scheme {
  std::int64_t weight_bits = 4, activation_bits = 4;

  // "W4A4", "w4a4", "4w4a"; Error(usage) otherwise.
  static Scheme parse(std::string_view text);
  std::string name() const;  // "W4A4"
};

}  // namespace zsq
