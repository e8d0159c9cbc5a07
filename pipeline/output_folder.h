// SPDX-License-Identifier: Apache-2.0
// The folder that a run writes to.
#pragma once
#include <filesystem>
#include <string>
#include <utility>

#include "core/observer.h"

namespace zsq::pipeline {

class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint" / "state.safetensors"; }

  // Creates the folder and writes a file to it, so that a full disk or a missing right shows now
  // and not after hours; Error(bad_input) names path and cause.
  void prepare() const;
  // The same; then starts a checkpoint of `identity` (one line: the model and how it is fed; the
  // settings are checked by pipeline/run_state.h), or goes on with the one that is there: true. To
  // resume if there is nothing starts anew, which the observer is told, so that a job script
  // needs no condition. Error(usage), and nothing changed, if the checkpoint is of another
  // identity.
  bool open(const std::string& identity, bool resume, Observer& observer) const;
  void remove_checkpoint() const;

 private:
  std::filesystem::path path_;
};

}  // namespace zsq::pipeline
