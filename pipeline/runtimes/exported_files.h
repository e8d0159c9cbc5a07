// SPDX-License-Identifier: Apache-2.0
// Which files of an output folder which installed runtimes can run.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/observer.h"
#include "pipeline/runtimes/python.h"
#include "quant/options.h"

namespace zsq::pipeline {

struct ExportedFile {
  std::filesystem::path path;
  Target target = Target::onnxruntime;
  // A run for a target with files of its own, which are here, has model.onnx beside them.
  bool beside_the_runs_own = false;
};

// What `zsq quantize` for this target and `zsq export` wrote into the folder; Error(bad_input) if
// there is nothing. `target`: report.json's.
std::vector<ExportedFile> exported_files(const std::filesystem::path& folder,
                                         const std::string& target);

// The target of a run's model.onnx: those that have files of their own are given onnxruntime's.
Target onnx_target(const std::string& target);

struct FileInRuntime {
  ExportedFile file;
  std::string runtime, version;
  bool decides = false;  // the file is written for this runtime, and not beside the run's own
};

struct FoundRuntimes {
  Python python;
  std::vector<FileInRuntime> pairs;  // not empty; by file, the runtime that it is written for first
};

// Asks the interpreters of python_programs() in turn. Error(usage) says where was looked for which
// packages, and the line that installs one; errors of an interpreter that was named. The observer
// is told of files that no runtime was found for.
FoundRuntimes find_runtimes(const std::vector<ExportedFile>& files,
                            const std::filesystem::path& asked_for, const ScratchFolder& scratch,
                            double seconds, Observer& observer);

}  // namespace zsq::pipeline
