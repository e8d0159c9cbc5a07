// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/output_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "core/error.h"
#include "tests/support/temp_folder.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

class OutputFolderTest : public ::testing::Test {
 protected:
  test::TempFolder temporary_;
  Observer silent_;
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(OutputFolderTest, IsCreatedWithItsParents) {
  OutputFolder folder(temporary_ / "a" / "b");
  EXPECT_FALSE(fs::exists(temporary_ / "a"));
  folder.open("model a", false, silent_);
  folder.close();
  EXPECT_TRUE(fs::is_empty(temporary_ / "a" / "b"));
}

TEST_F(OutputFolderTest, SaysWhatIsInTheWay) {
  temporary_.file("file", "x");
  for (const fs::path& bad : {temporary_ / "file", temporary_ / "file" / "below"}) {
    const std::string message =
        message_of([&] { OutputFolder(bad).open("model a", false, silent_); });
    EXPECT_NE(message.find(bad.string()), std::string::npos) << message;
    EXPECT_NE(message.find("cannot create the output folder"), std::string::npos) << message;
    EXPECT_NE(message.find("--output_path"), std::string::npos) << message;
  }
}

// /proc takes no file from anybody.
TEST_F(OutputFolderTest, SaysThatAFolderTakesNoFiles) {
  const std::string message =
      message_of([&] { OutputFolder("/proc/self").open("model a", false, silent_); });
  EXPECT_NE(message.find("cannot write to the output folder: /proc/self/"), std::string::npos)
      << message;
  EXPECT_NE(message.find("--output_path"), std::string::npos) << message;
}

TEST_F(OutputFolderTest, ResumesTheSameRunOnly) {
  OutputFolder folder(temporary_ / "new");
  EXPECT_FALSE(folder.open("model a", false, silent_));
  std::ofstream(folder.checkpoint()) << "state";
  EXPECT_TRUE(folder.open("model a", true, silent_));
  EXPECT_TRUE(fs::exists(folder.checkpoint()));
  const std::string message = message_of([&] { folder.open("model b", true, silent_); });
  EXPECT_NE(message.find("belongs to model a, this run is of model b"), std::string::npos)
      << message;
}

// A job script that always says --resume needs no condition.
TEST_F(OutputFolderTest, WithNothingToResumeStartsAnew) {
  OutputFolder folder(temporary_ / "new");
  EXPECT_FALSE(folder.open("model a", true, silent_));
  EXPECT_TRUE(folder.open("model a", true, silent_));
}

TEST_F(OutputFolderTest, ANewRunDropsTheOldState) {
  OutputFolder folder(temporary_.path());
  folder.open("a", false, silent_);
  std::ofstream(folder.checkpoint()) << "state";
  folder.open("a", false, silent_);
  EXPECT_FALSE(fs::exists(folder.checkpoint()));
}

// In a process of its own: a lock excludes other processes only.
TEST_F(OutputFolderTest, IsOfOneRunAtATime) {
  OutputFolder folder(temporary_ / "new");
  folder.open("a", false, silent_);
  std::ofstream(folder.checkpoint()) << "state";
  const auto elsewhere = [&](bool resume) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string message =
          message_of([&] { OutputFolder(temporary_ / "new").open("a", resume, silent_); });
      ::_exit(message.starts_with("another run writes to '") ? 3 : 4);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(elsewhere(false), 3);
  EXPECT_EQ(elsewhere(true), 3);
  EXPECT_TRUE(fs::exists(folder.checkpoint()));  // as it was
  folder.close();
  EXPECT_EQ(elsewhere(false), 4);
}

}  // namespace
}  // namespace zsq::pipeline
