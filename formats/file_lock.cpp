// SPDX-License-Identifier: Apache-2.0
#include "formats/file_lock.h"

#include <fstream>

#include "core/error.h"

namespace zsq::formats {
namespace {

boost::interprocess::file_lock open_lock(const std::filesystem::path& path) {
  std::ofstream(path, std::ios::app).close();
  try {
    return boost::interprocess::file_lock(path.c_str());
  } catch (const boost::interprocess::interprocess_exception& error) {
    throw Error(ErrorCode::bad_input,
                "cannot open the lock file '" + path.string() + "': " + error.what());
  }
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path) : lock_(open_lock(path)) {}

bool FileLock::try_lock() { return lock_.try_lock(); }

}  // namespace zsq::formats
