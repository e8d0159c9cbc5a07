// SPDX-License-Identifier: Apache-2.0
// Stands in for libtorch's header of this name: the CPU implementations compile without libtorch
// and run on one thread.
#pragma once
#include <cstdint>

namespace at {

template <class F>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t, const F& f) {
  if (begin < end) f(begin, end);
}
inline int get_num_threads() { return 1; }
inline int get_thread_num() { return 0; }
inline bool in_parallel_region() { return false; }

}  // namespace at
