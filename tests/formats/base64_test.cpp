// SPDX-License-Identifier: Apache-2.0
#include "formats/base64.h"

#include <gtest/gtest.h>

namespace zsq::formats {
namespace {

// RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  const std::string word = "foobar";
  const char* expected[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (std::size_t n = 0; n <= word.size(); ++n)
    EXPECT_EQ(base64(std::as_bytes(std::span(word).first(n))), expected[n]);
}

}  // namespace
}  // namespace zsq::formats
