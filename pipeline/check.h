// SPDX-License-Identifier: Apache-2.0
// Whether the runtimes that are installed compute, on this processor, what was measured of a
// finished run, and how fast.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "eval/options.h"

namespace zsq {

struct CheckOptions {
  DataOptions data;  // real images by eval_data; empty: held-out synthetic ones
  std::int64_t images = 64;
  std::filesystem::path model;   // the float network of the run; empty: where it was then
  std::filesystem::path python;  // with the runtimes; empty: pipeline/runtimes/python.h finds it
  std::int64_t threads = 2;      // of a runtime
  bool latency = true;
  double timeout = 600;  // seconds for one file in one runtime
};

// A file in a runtime.
struct RuntimeCheck {
  std::string file, runtime, version;
  bool decides = false;    // the runtime is the one that the file was written for
  std::string error = {};  // the runtime's; empty if it ran the file
  // Against this engine. Logits: agreement is the share of the images of equal arg-max; otherwise
  // as losses/divergence.h says. steps: largest_difference in quantization steps, 0 if none is
  // known.
  double agreement = 0, largest_difference = 0, relative_difference = 0, steps = 0;
  bool equal = false;
  // onnxruntime where the results differ: equal once its 8-bit products cannot saturate
  // (session.x64quantprecision).
  bool equal_if_exact = false;
  // Medians in milliseconds of one image; 0: not measured.
  double float_ms = 0, ms = 0;
};

struct CheckReport {
  std::string run, python, processor;
  std::string images_kind;  // "real" or "synthetic"
  std::int64_t images = 0, outputs = 0, threads = 0;
  std::string output_kind;
  std::string compared_with;  // "model.safetensors", or "model.onnx" without the float network
  // "NonMaxSuppression, TopK": operators at the end that zsq does not compute. What they read is
  // compared. Empty: none.
  std::string not_compared;
  // model.onnx is, byte for byte, what this version writes of model.safetensors. A small change may
  // be less than rounding makes, and another version may write the same values otherwise.
  bool unchanged = false;
  double step = 0;  // a quantization step of an output; 0: not known
  // The largest difference that another order of summation makes, and its share of the largest
  // output.
  double rounding = 0, relative_rounding = 0;
  std::vector<RuntimeCheck> rows;
  std::vector<std::string> verdict;  // a sentence for each row that decides
  std::string fastest;               // of the equal rows, a sentence; empty without latency
  bool equal = false;                // in all rows that decide
};

// `folder` is the output folder of a finished `zsq quantize`; all files in it are checked that
// `zsq quantize` and `zsq export` write for runtimes. Error(usage) if no runtime is found for any;
// Error(bad_input) if the Python that has them fails.
CheckReport check_run(const std::filesystem::path& folder, const CheckOptions& options,
                      Observer* observer = nullptr);

std::string to_json(const CheckReport& report);  // one line

}  // namespace zsq
