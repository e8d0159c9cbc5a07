// SPDX-License-Identifier: Apache-2.0
#include "pipeline/scheme.h"

#include <regex>

#include "core/error.h"

namespace zsq {

Scheme Scheme::parse(std::string_view text) {
  static const std::regex letters_first("[wW]([2-8])[aA]([2-8])"),
      digits_first("([2-8])[wW]([2-8])[aA]");
  const std::string copy(text);
  std::smatch bits;
  if (!std::regex_match(copy, bits, letters_first) && !std::regex_match(copy, bits, digits_first))
    throw Error(ErrorCode::usage,
                "'" + copy +
                    "' is not a scheme; expected bits of weights and activations, "
                    "2 to 8 each, like W4A4 or 4w4a");
  return {std::stoi(bits[1]), std::stoi(bits[2])};
}

std::string Scheme::name() const {
  return std::string("W").append(std::to_string(weight_bits)) + "A" +
         std::to_string(activation_bits);
}

}  // namespace zsq
