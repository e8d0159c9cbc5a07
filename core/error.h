// SPDX-License-Identifier: Apache-2.0
// The one exception type. Its message says what was found, what was expected and what to do.
#pragma once
#include <stdexcept>
#include <string>

namespace zsq {

enum class ErrorCode {
  internal,           // a fault of this program
  usage,              // a flag, a recipe key or a value
  bad_input,          // a file or folder that is missing, unreadable, damaged or unwritable
  unsupported_model,  // a network that this engine cannot quantize (no BatchNorm, unknown operator)
  accuracy_gate,      // result saved, but below the accuracy that was asked for
  numeric_failure,    // too many steps with non-finite gradients
  out_of_memory,
  stopped,  // by a signal; the run can be resumed
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// Process exit code: 1 internal and numeric, 2 usage and bad input, 3 accuracy gate, 4 unsupported
// model, 5 out of memory, 75 stopped.
int exit_code(ErrorCode code);

}  // namespace zsq
