// SPDX-License-Identifier: Apache-2.0
#include "formats/array.h"

#include <gtest/gtest.h>

#include "tests/formats/helpers.h"

namespace zsq::formats {
namespace {

TEST(Array, SizesAndNames) {
  for (const auto& [name, array] : every_dtype()) {
    if (name != "empty") {
      EXPECT_EQ(name_of(array.dtype), name);
    }
    EXPECT_EQ(array.data.size(), byte_count(array.dtype, array.shape)) << name;
  }
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::u32), 4u);
  EXPECT_EQ(Array({DType::f32, {}, std::vector<std::byte>(4)}).element_count(), 1);
  EXPECT_EQ(Array({DType::f32, {2, 0}, {}}).element_count(), 0);
}

TEST(Array, TwoElementsOfFourBitsAreAByte) {
  const std::uint8_t values[] = {1, 15, 7};
  const Array array = pack_u4({3, 1}, values);
  EXPECT_EQ(array.dtype, DType::u4);
  EXPECT_EQ(array.element_count(), 3);
  EXPECT_EQ(byte_count(DType::u4, array.shape), 2u);
  const auto bytes = array.as<std::uint8_t>();
  EXPECT_EQ(std::vector<int>(bytes.begin(), bytes.end()), (std::vector<int>{0xf1, 0x07}));
  const std::int64_t large[] = {1LL << 40, 1LL << 40};
  expect_error([&] { byte_count(DType::u4, large); }, ErrorCode::bad_input, "overflows");
}

TEST(Array, ImpossibleShapesAreRefused) {
  const std::int64_t negative[] = {3, -1}, large[] = {1LL << 40, 1LL << 40};
  expect_error([&] { byte_count(DType::u8, negative); }, ErrorCode::bad_input, "-1");
  expect_error([&] { byte_count(DType::u8, large); }, ErrorCode::bad_input, "overflows");
  const std::vector<std::int64_t> deep(65, 1);
  expect_error([&] { byte_count(DType::u8, deep); }, ErrorCode::bad_input, "65 dimensions");
}

TEST(Array, FindByName) {
  const NamedArrays arrays = every_dtype();
  ASSERT_TRUE(find(arrays, "i16"));
  EXPECT_EQ(find(arrays, "i16")->as<std::int16_t>()[0], -3);
  EXPECT_FALSE(find(arrays, "i17"));
}

}  // namespace
}  // namespace zsq::formats
