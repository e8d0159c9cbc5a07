// SPDX-License-Identifier: Apache-2.0
#include "core/choice.h"

#include <gtest/gtest.h>

namespace zsq {

enum class Fruit { apple, pear };
template <>
struct EnumNames<Fruit> {
  static constexpr std::array<std::string_view, 2> names{"apple", "pear"};
};

namespace {

TEST(Choice, IsTheValueOfTheName) {
  EXPECT_EQ(choice<Fruit>("fruit", "pear"), Fruit::pear);
  EXPECT_EQ(names_of<Fruit>(), (std::vector<std::string>{"apple", "pear"}));
}

TEST(Choice, NamesTheNearestWhereUnknown) {
  try {
    choice<Fruit>("fruit", "aple", "--fruit: ");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(),
                 "--fruit: 'aple' is not a fruit; did you mean 'apple'? Known: apple, pear");
  }
}

}  // namespace
}  // namespace zsq
