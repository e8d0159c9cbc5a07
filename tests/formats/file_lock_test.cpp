// SPDX-License-Identifier: Apache-2.0
#include "formats/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::formats {
namespace {

bool locks_in_another_process(const std::filesystem::path& path) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(FileLock(path).try_lock() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 0;
}

TEST(FileLock, ExcludesOtherProcessesUntilItEnds) {
  const test::TempFolder folder;
  std::optional<FileLock> lock(folder / "lock");
  EXPECT_TRUE(locks_in_another_process(folder / "lock"));  // which has ended
  EXPECT_TRUE(lock->try_lock());
  EXPECT_FALSE(locks_in_another_process(folder / "lock"));
  lock.reset();
  EXPECT_TRUE(locks_in_another_process(folder / "lock"));
}

TEST(FileLock, NamesAFileThatCannotBeMade) {
  const std::string message =
      test::error_message(ErrorCode::bad_input, [] { FileLock("/proc/self/lock"); });
  EXPECT_NE(message.find("/proc/self/lock"), std::string::npos) << message;
}

}  // namespace
}  // namespace zsq::formats
