// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/array.h"
#include "formats/atomic_file.h"
#include "tests/support/temp_folder.h"

namespace zsq::formats {

using test::TempFolder;

// Little-endian bytes of a number.
template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
Array make_array(DType dtype, std::vector<std::int64_t> shape, std::vector<T> values) {
  return Array::from(dtype, std::move(shape), std::span<const T>(values));
}

inline void expect_same(const Array& got, const Array& wanted) {
  EXPECT_EQ(got.dtype, wanted.dtype);
  EXPECT_EQ(got.shape, wanted.shape);
  EXPECT_TRUE(got.data == wanted.data);
}

inline void expect_same(const NamedArrays& got, const NamedArrays& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(wanted[i].first);
    EXPECT_EQ(got[i].first, wanted[i].first);
    expect_same(got[i].second, wanted[i].second);
  }
}

// One array of every element type.
inline NamedArrays every_dtype() {
  return {{"f64", make_array<double>(DType::f64, {}, {2.5})},
          {"i64", make_array<std::int64_t>(DType::i64, {2}, {-1, 5'000'000'000})},
          {"u64", make_array<std::uint64_t>(DType::u64, {1}, {~0ULL})},
          {"f32", make_array<float>(DType::f32, {2, 2}, {1, -2, 3.5f, 0})},
          {"i32", make_array<std::int32_t>(DType::i32, {1}, {-7})},
          {"u32", make_array<std::uint32_t>(DType::u32, {1}, {4'000'000'000u})},
          {"f16", make_array<std::uint16_t>(DType::f16, {2}, {0x3c00, 0xc000})},
          {"bf16", make_array<std::uint16_t>(DType::bf16, {1}, {0x3f80})},
          {"u16", make_array<std::uint16_t>(DType::u16, {1}, {65535})},
          {"i16", make_array<std::int16_t>(DType::i16, {1}, {-3})},
          {"u8", make_array<std::uint8_t>(DType::u8, {3}, {1, 2, 255})},
          {"i8", make_array<std::int8_t>(DType::i8, {2}, {-128, 127})},
          {"boolean", make_array<std::uint8_t>(DType::boolean, {2}, {0, 1})},
          {"empty", make_array<std::uint8_t>(DType::boolean, {0, 3}, {})}};
}

template <class Function>
void expect_error(Function&& function, ErrorCode code, std::string_view part) {
  try {
    function();
    ADD_FAILURE() << "no error; wanted one with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
  }
}

// A file that is cut anywhere, or empty, is an Error that names the file; never a crash or a
// result.
template <class Reader>
void expect_every_prefix_fails(const TempFolder& folder, const std::string& bytes,
                               Reader&& reader) {
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    SCOPED_TRACE(length);
    const auto path = folder.file("cut", std::string_view(bytes).substr(0, length));
    expect_error([&] { reader(path); }, ErrorCode::bad_input, path.string());
  }
}

// A file with any one byte changed is an Error or some result; the sanitizers see the rest.
template <class Reader>
void expect_survives_changed_bytes(const TempFolder& folder, const std::string& bytes,
                                   Reader&& reader) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= "\x01\x80\xff"[i % 3];
    try {
      reader(folder.file("changed", changed));
    } catch (const Error&) {
    }
  }
}

}  // namespace zsq::formats
