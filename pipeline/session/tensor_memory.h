// SPDX-License-Identifier: Apache-2.0
// The memory of tensors on the CPU.
#pragma once
#include <cstdint>

namespace zsq {

// From here on large tensors that are freed stay mapped for others of about their size, so that a
// step of a training loop finds its memory where the step before left it: the system takes a page
// fault for each page that it hands out, and the heap of the C library, which could keep them as
// well, is full of holes after a few layers. Blocks in use and freed ones together are never more
// than were in use at one time. For a program; a library does not replace the allocator of the
// process that it is loaded into.
void keep_freed_tensors();

struct TensorMemory {
  std::int64_t used = 0, freed = 0, most_used = 0;  // bytes, of large tensors
};
TensorMemory tensor_memory();

}  // namespace zsq
