// SPDX-License-Identifier: Apache-2.0
#include "formats/array.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "formats/limits.h"

namespace zsq::formats {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::i8:
    case DType::boolean:
    case DType::u4:
      return 1;
    case DType::f16:
    case DType::bf16:
    case DType::u16:
    case DType::i16:
      return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64:
      break;
  }
  return 8;
}

std::string_view name_of(DType dtype) {
  constexpr std::string_view kNames[] = {"f16", "bf16", "f32", "f64", "u8",  "i8",      "u16",
                                         "i16", "i32",  "u32", "i64", "u64", "boolean", "u4"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::size_t byte_count(DType dtype, std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxRank)
    throw Error(ErrorCode::bad_input, "a tensor has " + std::to_string(shape.size()) +
                                          " dimensions; at most 64 are read");
  // An empty dimension makes the whole tensor empty, whatever the others are.
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  std::size_t bytes = size_of(dtype);
  for (const std::int64_t size : shape) {
    if (size < 0)
      throw Error(ErrorCode::bad_input, "a tensor has the negative size " + std::to_string(size));
    if (empty) continue;
    if (bytes > std::numeric_limits<std::int64_t>::max() / static_cast<std::size_t>(size))
      throw Error(ErrorCode::bad_input, "the shape of a tensor overflows 64 bits");
    bytes *= static_cast<std::size_t>(size);
  }
  if (dtype == DType::u4) bytes = bytes / 2 + bytes % 2;
  return empty ? 0 : bytes;
}

std::int64_t Array::element_count() const {
  return static_cast<std::int64_t>(byte_count(DType::u8, shape));
}

void require_consistent(const std::string& name, const Array& array) {
  if (array.data.size() != byte_count(array.dtype, array.shape))
    throw Error(ErrorCode::internal, "array '" + name + "' has data that does not fit its shape");
}

Array pack_u4(std::vector<std::int64_t> shape, std::span<const std::uint8_t> values) {
  std::vector<std::byte> bytes((values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    bytes[i / 2] |= static_cast<std::byte>(values[i] << 4 * (i % 2));
  return {DType::u4, std::move(shape), std::move(bytes)};
}

const Array* find(const NamedArrays& arrays, std::string_view name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == arrays.end() ? nullptr : &found->second;
}

}  // namespace zsq::formats
