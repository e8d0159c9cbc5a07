// SPDX-License-Identifier: Apache-2.0
// What the parts of the emulated device share.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zsq::test {

// The host waits for the device, for this reason.
void count_wait(const std::string& cause);

c10::Allocator* page_locked_allocator();
bool is_page_locked(const void* memory);  // the first byte of a block

c10::StreamId current_stream();

// For stream_order.h. Device memory was read, or written too, by the current stream; it was handed
// out, given back; a stream was told to the allocator (record_stream). `what` names the access.
void touched(const std::string& what, const void* memory, bool writes);
void allocated(const void* memory);
void released(const void* memory);
void used_by(const void* memory, c10::StreamId stream);
// What a stream has been given so far, and who runs on only after it.
using Event = std::map<c10::StreamId, std::uint64_t>;
Event now_on(c10::StreamId stream);
void wait_for(const Event& event, c10::StreamId stream);
void host_waits_for(const Event& event);
void host_waits_for_all();

// The block of device memory that an address points into: null if none, and with its content.
const void* block_begin(const void* memory);
std::optional<std::pair<const void*, std::string>> block_of(const void* memory);

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
