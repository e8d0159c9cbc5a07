// SPDX-License-Identifier: Apache-2.0
#include "pipeline/scheme.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace zsq {
namespace {

TEST(Scheme, ReadsEverySpelling) {
  for (const char* text : {"W4A8", "w4a8", "4w8a", "4W8A"}) {
    const Scheme scheme = Scheme::parse(text);
    EXPECT_EQ(scheme.weight_bits, 4) << text;
    EXPECT_EQ(scheme.activation_bits, 8) << text;
    EXPECT_EQ(scheme.name(), "W4A8");
  }
}

TEST(Scheme, RefusesTheRest) {
  for (const char* text : {"", "W4", "W9A4", "W4A0", "W1A4", "W4A4 ", "W16A16", "A4W4", "int8"})
    EXPECT_THROW(Scheme::parse(text), Error) << text;
}

}  // namespace
}  // namespace zsq
