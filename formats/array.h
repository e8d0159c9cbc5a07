// SPDX-License-Identifier: Apache-2.0
// A dense tensor on the host, row-major, as every file format here gives and takes it.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zsq::formats {

// u4: two elements a byte, the first in the low four bits; of an odd number the last byte's high
// four bits are unused. Only ONNX files have it.
enum class DType { f16, bf16, f32, f64, u8, i8, u16, i16, i32, u32, i64, u64, boolean, u4 };

// Little-endian hosts only: the bytes of an Array are the bytes of the files.
static_assert(std::endian::native == std::endian::little);

std::size_t size_of(DType dtype);       // bytes per element; of u4 per two elements
std::string_view name_of(DType dtype);  // "f32", ...

struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::vector<std::byte> data;      // exactly byte_count(dtype, shape) bytes

  std::int64_t element_count() const;

  // The elements as T; T must have the size of dtype.
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
  template <class T>
  static Array from(DType dtype, std::vector<std::int64_t> shape, std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
  }
};

// Bytes of a dense tensor. Error(bad_input) if a size is negative, the product overflows or
// there are more than 64 dimensions: for shapes that come from a file.
std::size_t byte_count(DType dtype, std::span<const std::int64_t> shape);

// Error(internal) if the data of an array to be written does not fit its shape.
void require_consistent(const std::string& name, const Array& array);

// A u4 array of values below 16.
Array pack_u4(std::vector<std::int64_t> shape, std::span<const std::uint8_t> values);

// In file order.
using NamedArrays = std::vector<std::pair<std::string, Array>>;

const Array* find(const NamedArrays& arrays, std::string_view name);  // null if absent

}  // namespace zsq::formats
