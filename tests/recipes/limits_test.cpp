// SPDX-License-Identifier: Apache-2.0
// Recipes that would take far more than their size.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "recipes/recipe.h"
#include "recipes/table.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq {
namespace {

class RecipeLimits : public testing::Test {
 protected:
  std::string refusal(const std::string& text) const {
    const auto file = folder_.file("r.yaml", text).string();
    return test::error_message(ErrorCode::usage, [&] { load_recipe(file); });
  }
  test::TempFolder folder_;
};

// Under a longer path it would be another file each time, and never end.
TEST_F(RecipeLimits, AFileThatExtendsItselfByAnotherPath) {
  EXPECT_NE(refusal("extends: ./r.yaml\n").find("extend more than 100 others"), std::string::npos);
}

TEST_F(RecipeLimits, FilesThatExtendTheNextOneTwice) {
  for (int i = 0; i < 30; ++i) {
    const auto next = std::to_string(i + 1) + ".yaml";
    folder_.file(std::to_string(i) + ".yaml", "extends: [" + next + ", " + next + "]\n");
  }
  folder_.file("30.yaml", "extends: deploy\n");
  EXPECT_NE(refusal("extends: 0.yaml\n").find("extend more than 100 others"), std::string::npos);
}

// Each alias holds nine of the one before: a billion items, if any of them were copied.
TEST_F(RecipeLimits, AliasesAreNotCopied) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const auto before = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    text += name + ": &" + name + " [";
    for (int k = 0; k < 9; ++k) text += (k ? ", " : "") + before;
    text += "]\n";
  }
  EXPECT_NE(refusal("finetune:\n  milestones: *a9\n").find("not YAML"), std::string::npos);
  EXPECT_NE(refusal(text).find("'a0' is not a recipe key"), std::string::npos);
  const auto inside = "about: " + text.substr(4) + "finetune: {milestones: *a9}\n";
  EXPECT_NE(refusal(inside).find("r.yaml:1"), std::string::npos);
}

TEST_F(RecipeLimits, DeepAndLongFiles) {
  EXPECT_NE(refusal(std::string(100'000, '[')).find("not YAML"), std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '{')).find("not YAML"), std::string::npos);
  const auto long_text = "about: " + std::string(1 << 20, 'x') + "\n";
  EXPECT_NE(refusal(long_text).find("longer than 1 MiB"), std::string::npos);
  const auto table = folder_.file("t.yaml", long_text).string();
  const auto message = test::error_message(ErrorCode::usage, [&] { load_table(table); });
  EXPECT_NE(message.find("longer than 1 MiB"), std::string::npos);
}

}  // namespace
}  // namespace zsq
