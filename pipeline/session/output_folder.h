// SPDX-License-Identifier: Apache-2.0
// The folder that a run writes to.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "core/observer.h"
#include "formats/file_lock.h"

namespace zsq::pipeline {

class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint" / "state.safetensors"; }

  // Creates the folder and writes a file to it, so that a full disk or a missing right shows now
  // and not after hours; Error(bad_input) names path and cause.
  void prepare() const;
  // The same, for this process alone until it ends: Error(bad_input) where another one has opened
  // the folder. Then starts a checkpoint of `identity` (one line: the model and how it is fed; the
  // settings are checked by pipeline/run/state.h), or goes on with the one that is there: true. To
  // resume if there is nothing starts anew, which the observer is told, so that a job script
  // needs no condition. Error(usage), and nothing changed, if the checkpoint is of another
  // identity.
  bool open(const std::string& identity, bool resume, Observer& observer);
  void close();  // removes the checkpoint: the run has its results

 private:
  std::filesystem::path path_;
  std::optional<formats::FileLock> lock_;
};

}  // namespace zsq::pipeline
