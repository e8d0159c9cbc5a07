// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>

#include "formats/file_lock.h"

namespace zsq::pipeline {

// A new folder among the system's temporary files, gone at the end of this object's life. A process
// that is killed leaves its folder; the next one of the same user removes it, because nobody holds
// its lock any more.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<formats::FileLock> lock_;
};

}  // namespace zsq::pipeline
