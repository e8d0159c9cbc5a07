// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

namespace zsq {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
    case ErrorCode::bad_input:
      return 2;
    case ErrorCode::accuracy_gate:
      return 3;
    case ErrorCode::unsupported_model:
      return 4;
    case ErrorCode::out_of_memory:
      return 5;
    case ErrorCode::stopped:
      return 75;
    case ErrorCode::internal:
    case ErrorCode::numeric_failure:
      break;
  }
  return 1;
}

}  // namespace zsq
