// SPDX-License-Identifier: Apache-2.0
// Protocol buffer fields put together by hand.
#pragma once
#include <string>

#include "tests/formats/helpers.h"

namespace zsq::formats::onnx {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
inline std::string number(std::uint32_t field, std::int64_t value) {
  return varint(field << 3) + varint(static_cast<std::uint64_t>(value));
}
inline std::string text(std::uint32_t field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}

// A model of IR 8 and opset 17 around the fields of its graph.
inline std::string model(const std::string& graph_fields) {
  return number(1, 8) + text(7, graph_fields) + text(8, text(1, "") + number(2, 17));
}

}  // namespace zsq::formats::onnx
