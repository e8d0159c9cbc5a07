// SPDX-License-Identifier: Apache-2.0
// Callers of the public API meet zsq::Error only: what libtorch, the file system and the allocator
// throw is translated.
#pragma once

namespace zsq::pipeline {

// Rethrows the exception in flight: memory that ran out as Error(out_of_memory), a path that the
// system refuses as Error(bad_input), other libtorch failures as Error(internal) in words of our
// own, the rest as it is.
[[noreturn]] void rethrow_translated();

template <class Action>
auto at_boundary(const Action& action) {
  try {
    return action();
  } catch (...) {
    rethrow_translated();
  }
}

}  // namespace zsq::pipeline
