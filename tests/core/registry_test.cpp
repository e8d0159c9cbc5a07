// SPDX-License-Identifier: Apache-2.0
#include "core/registry.h"

#include <gtest/gtest.h>

#include <array>

namespace zsq {

enum class Shape { round, square, flat };
template <>
struct EnumNames<Shape> {
  static constexpr std::array<std::string_view, 3> names{"round", "square", "flat"};
};

namespace {

struct Row {
  Shape name;
  int corners;
};
constexpr std::array kRows{Row{Shape::square, 4}, Row{Shape::round, 0}};

TEST(Registry, RowsAreFoundByNameInAnyOrder) {
  EXPECT_EQ(&row_of(kRows, Shape::round, "shapes.cpp"), &kRows[1]);
  EXPECT_EQ(row_of(kRows, Shape::square, "shapes.cpp").corners, 4);
}

TEST(Registry, AMissingRowNamesTheFile) {
  try {
    row_of(kRows, Shape::flat, "shapes.cpp");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
    EXPECT_NE(std::string(e.what()).find("shapes.cpp has no row for flat"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace zsq
