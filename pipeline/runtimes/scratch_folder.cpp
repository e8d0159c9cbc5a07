// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/scratch_folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "core/error.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = "lock";

// "zsq-check-": this program's; the number of the process tells the folders of this one, which
// POSIX locks do not.
std::string prefix() { return "zsq-check-" + std::to_string(::getpid()) + "-"; }

bool is_mine(const fs::path& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

// A folder without a lock was begun a moment ago.
bool is_abandoned(const fs::path& folder) {
  if (!is_mine(folder) || !fs::exists(folder / kLockFile)) return false;
  formats::FileLock lock(folder / kLockFile);
  return lock.try_lock();
}

void remove_abandoned(const fs::path& among) {
  std::error_code ignored;
  for (fs::directory_iterator entry(among, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("zsq-check-") || name.starts_with(prefix())) continue;
    try {
      if (is_abandoned(entry->path())) fs::remove_all(entry->path(), ignored);
    } catch (const std::exception&) {  // another process removes it at this moment
    }
  }
}

}  // namespace

ScratchFolder::ScratchFolder() {
  const fs::path among = fs::temp_directory_path();
  remove_abandoned(among);
  std::string name = among / (prefix() + "XXXXXX");
  if (!::mkdtemp(name.data()))
    throw Error(ErrorCode::bad_input, "cannot make a folder in " + among.string() +
                                          "; set TMPDIR to one that can be written");
  path_ = name;
  lock_ = std::make_unique<formats::FileLock>(path_ / kLockFile);
  lock_->try_lock();
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace zsq::pipeline
