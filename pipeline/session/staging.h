// SPDX-License-Identifier: Apache-2.0
// A folder in which results are collected until all of them are there.
#pragma once
#include <filesystem>
#include <vector>

namespace zsq::pipeline {

class Staging {
 public:
  // In `target`, under a name of its own; gone at the end of this object's life.
  explicit Staging(std::filesystem::path target);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // Moves everything to `target`, files over files of the same name; returns the new paths, sorted.
  std::vector<std::filesystem::path> publish();

 private:
  std::filesystem::path target_, folder_;
};

}  // namespace zsq::pipeline
