// SPDX-License-Identifier: Apache-2.0
// Runtimes are asked through a Python that has them: the engine itself links none.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/observer.h"
#include "pipeline/report/json.h"
#include "pipeline/runtimes/scratch_folder.h"

namespace zsq::pipeline {

// The text of run_exported.py, which says what a job and its result hold.
const char* run_exported_script();

class Python {
 public:
  // `seconds`: after which a job is ended with an error.
  Python(std::filesystem::path program, const ScratchFolder& scratch, double seconds,
         Observer& observer);

  const std::filesystem::path& program() const { return program_; }
  // The result of a job. Error(bad_input) with the last lines of what the program said, if it fails
  // or gives no JSON, or if it takes too long; Error(stopped) if the observer asks for it.
  Json run(Json job) const;

 private:
  std::filesystem::path program_;
  const ScratchFolder& scratch_;
  double seconds_;
  Observer& observer_;
};

// Interpreters in the order in which they are tried: `asked_for` alone if that is given, else the
// one that ZSQ_PYTHON names, else .deps/python of the source tree that this program was built in,
// and python3 on PATH. Error(usage) if one that was named is not there.
std::vector<std::filesystem::path> python_programs(const std::filesystem::path& asked_for);

}  // namespace zsq::pipeline
