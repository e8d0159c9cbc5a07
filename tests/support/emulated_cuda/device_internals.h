// SPDX-License-Identifier: Apache-2.0
// What the parts of the emulated device share.
#pragma once
#include <c10/core/Allocator.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace zsq::test {

// The host waits for the device, for this reason.
void count_wait(const std::string& cause);

c10::Allocator* page_locked_allocator();
bool is_page_locked(const void* memory);  // the first byte of a block

// Every block of device memory and what it holds.
using MemoryImage = std::vector<std::pair<void*, std::string>>;
MemoryImage memory_image();
// Blocks that exist no longer, or not yet then, are left alone.
void restore_memory(const MemoryImage& image);

// Blocks that are allocated from now on stay when they are released, until somebody frees them: a
// recording goes on using them.
void keep_memory(std::vector<void*>* kept);  // null: no longer
void free_memory(const std::vector<void*>& kept);

}  // namespace zsq::test
