// SPDX-License-Identifier: Apache-2.0
// Whether streams that share memory wait for each other. The emulated device runs everything at
// once and in order; here every access is checked as if streams ran as late or as early as events
// allow (vector clocks, as race detectors for threads have them).
#pragma once
#include <string>
#include <vector>

namespace zsq::test {

// While it lives, accesses to device memory are watched: those of operators of libtorch, and of
// kernels to every block that a parameter points into (a kernel writes to those that it changed).
class StreamOrder {
 public:
  StreamOrder();
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  // One line for each pair of an access and an earlier one on another stream that it does not wait
  // for, unless both only read, and for memory that was given back while another stream may use it.
  std::vector<std::string> races() const;
};

// Whether what the current stream is given now would wait for all that any stream was given.
bool current_stream_is_last();

}  // namespace zsq::test
