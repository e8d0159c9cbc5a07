// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/scratch_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

class Scratch : public ::testing::Test {
 protected:
  Scratch() { setenv("TMPDIR", among_.path().c_str(), 1); }
  ~Scratch() override { unsetenv("TMPDIR"); }
  std::ptrdiff_t folders() const {
    return std::distance(fs::directory_iterator(among_.path()), fs::directory_iterator());
  }
  test::TempFolder among_;
};

TEST_F(Scratch, IsGoneAtTheEnd) {
  {
    const ScratchFolder one, other;
    std::ofstream(one / "file") << "text";
    EXPECT_EQ(folders(), 2);
    EXPECT_NE(one / "file", other / "file");
  }
  EXPECT_EQ(folders(), 0);
}

// A killed process cannot clean up; one that still runs keeps its folder.
TEST_F(Scratch, TheNextProcessRemovesWhatAKilledOneLeft) {
  const pid_t child = fork();
  if (child == 0) {
    const ScratchFolder abandoned;
    std::ofstream(abandoned / "ready") << "text";
    pause();
    _exit(0);
  }
  fs::path left;
  while (left.empty())
    for (const auto& entry : fs::directory_iterator(among_.path()))
      if (fs::exists(entry.path() / "ready")) left = entry.path();
  { const ScratchFolder next; }
  EXPECT_TRUE(fs::exists(left));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(left));
  { const ScratchFolder next; }
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(Scratch, LeavesOthersFoldersAlone) {
  fs::create_directory(among_ / "zsq-check-1-begun");  // no lock yet
  fs::create_directory(among_ / "another");
  { const ScratchFolder next; }
  EXPECT_EQ(folders(), 2);
}

}  // namespace
}  // namespace zsq::pipeline
