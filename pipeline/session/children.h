// SPDX-License-Identifier: Apache-2.0
// Programs started side by side: a fault or a lack of memory in one does not touch the others.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/observer.h"

namespace zsq::pipeline {

struct ChildJob {
  std::vector<std::string> words;  // program and arguments
  std::filesystem::path log;       // what it says on stderr; what it says on stdout is dropped
};

// Runs all jobs, `jobs_at_once` at a time, in order. `before` is called with a job's number before
// it starts, `after` with its exit code (128 + signal where one ended it, 127 where the program is
// not there). Where the observer asks to stop, the running ones get SIGTERM, are waited for, and
// Error(stopped) is thrown.
void run_children(const std::vector<ChildJob>& jobs, std::int64_t jobs_at_once, Observer& observer,
                  const std::function<void(std::size_t)>& before,
                  const std::function<void(std::size_t, int)>& after);

}  // namespace zsq::pipeline
