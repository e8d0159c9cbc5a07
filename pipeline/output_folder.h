// SPDX-License-Identifier: Apache-2.0
// The folder that a run writes to.
#pragma once
#include <filesystem>
#include <string>
#include <utility>

namespace zsq::pipeline {

class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint" / "state.safetensors"; }

  // Creates the folder and writes a file to it, so that a full disk or a missing right shows now
  // and not after hours; Error(bad_input) names path and cause.
  void prepare() const;
  // The same; then starts or goes on with a checkpoint of `identity` (one line: the model and how
  // it is fed; the settings are checked by train/). To resume, a run of the same identity must have
  // begun here, else Error(usage) and nothing is created. Otherwise what was there is removed.
  void open(const std::string& identity, bool resume) const;
  void remove_checkpoint() const;

 private:
  std::filesystem::path path_;
};

}  // namespace zsq::pipeline
