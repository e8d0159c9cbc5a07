// SPDX-License-Identifier: Apache-2.0
#include "formats/zip_archive.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/formats/helpers.h"

namespace zsq::formats {
namespace {

std::string small_archive() {
  const auto zip = make_zip({{"a", std::vector<std::byte>(8, std::byte{'x'})}, {"b", {}}});
  return {reinterpret_cast<const char*>(zip.data()), zip.size()};
}

// Where the central directory describes the first entry.
std::size_t directory_of(const std::string& bytes) { return bytes.find("PK\x01\x02"); }

TEST(ZipArchive, FindsAndReads) {
  const TempFolder folder;
  const ZipArchive archive(folder.file("x", small_archive()));
  ASSERT_EQ(archive.entries().size(), 2u);
  ASSERT_TRUE(archive.find("a"));
  EXPECT_EQ(archive.read(*archive.find("a")), std::vector<std::byte>(8, std::byte{'x'}));
  EXPECT_TRUE(archive.read(*archive.find("b")).empty());
  EXPECT_FALSE(archive.find("c"));
}

TEST(ZipArchive, ChangedDataFailsTheChecksum) {
  const TempFolder folder;
  std::string bytes = small_archive();
  bytes[bytes.find("xxxx")] = 'y';
  const ZipArchive archive(folder.file("x", bytes));
  expect_error([&] { archive.read(*archive.find("a")); }, ErrorCode::bad_input, "damaged");
}

// Sizes are judged before anything of that size is allocated.
TEST(ZipArchive, ImpossibleSizesAreRefused) {
  const TempFolder folder;
  const std::uint32_t huge = 0x7fffffff;
  for (const std::size_t field : {20, 24}) {  // compressed and uncompressed size
    std::string bytes = small_archive();
    std::memcpy(bytes.data() + directory_of(bytes) + field, &huge, sizeof huge);
    expect_error([&] { ZipArchive archive(folder.file("x", bytes)); }, ErrorCode::bad_input, "a");
  }
}

}  // namespace
}  // namespace zsq::formats
