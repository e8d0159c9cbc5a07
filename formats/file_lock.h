// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <boost/interprocess/sync/file_lock.hpp>
#include <filesystem>

namespace zsq::formats {

// Held by one process at a time, on network file systems too; it ends with the process, however
// that ends. Within a process it excludes nobody (POSIX record locks).
class FileLock {
 public:
  // The file is created where it is missing, and stays. Error(bad_input) if that fails.
  explicit FileLock(const std::filesystem::path& path);

  bool try_lock();  // false: another process holds it

 private:
  boost::interprocess::file_lock lock_;
};

}  // namespace zsq::formats
