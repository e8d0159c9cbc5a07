// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/staging.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

TEST(Staging, LeavesNothingUnlessPublished) {
  const test::TempFolder target;
  {
    const Staging staging(target.path());
    std::ofstream(staging.folder() / "a") << "1";
  }
  EXPECT_TRUE(fs::is_empty(target.path()));
}

TEST(Staging, MovesAtTheEndAndReplacesFiles) {
  const test::TempFolder target;
  target.file("a", "old");
  {
    Staging staging(target.path());
    std::ofstream(staging.folder() / "a") << "new!";
    fs::create_directories(staging.folder() / "b" / "c");
    EXPECT_EQ(staging.publish(), (std::vector<fs::path>{target / "a", target / "b"}));
  }
  EXPECT_EQ(names_in(target.path()), (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(fs::file_size(target / "a"), 4u);
}

TEST(Staging, RefusesAFolderThatIsThere) {
  const test::TempFolder target;
  fs::create_directories(target / "b" / "c");
  Staging staging(target.path());
  fs::create_directories(staging.folder() / "b");
  test::error_message(ErrorCode::bad_input, [&] { staging.publish(); });
}

}  // namespace
}  // namespace zsq::pipeline
