// SPDX-License-Identifier: Apache-2.0
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <set>

#include "tests/support/emulated_cuda/device.h"
#include "tests/support/emulated_cuda/device_internals.h"

namespace zsq::test {
namespace {

constexpr auto kAlignment = std::align_val_t(64);

std::mutex access_to_blocks;
std::map<void*, std::size_t> blocks;
std::map<void*, bool> kept_blocks;  // whether nobody but the recording holds it
std::vector<void*>* keep = nullptr;
std::int64_t allocations = 0;

void free_block(void* memory) {
  released(memory);
  const std::lock_guard lock(access_to_blocks);
  blocks.erase(memory);
  ::operator delete(memory, kAlignment);
}

auto block_around(const void* memory) {
  auto block = blocks.upper_bound(const_cast<void*>(memory));
  if (block == blocks.begin()) return blocks.end();
  --block;
  const bool inside = memory < static_cast<const char*>(block->first) + block->second;
  return inside ? block : blocks.end();
}

// Whatever it plays, the memory is the host's.
class HostMemory : public c10::Allocator {
 public:
  void copy_data(void* to, const void* from, std::size_t bytes) const final {
    std::memcpy(to, from, bytes);
  }
};

// Exactly as large as asked for, and full of NaN: what is read before it is written shows.
class Allocator final : public HostMemory {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = bytes > 0 ? new_block(bytes) : nullptr;
    if (memory) allocated(memory);
    return {memory, memory, &release, c10::Device(c10::kCUDA, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static void* new_block(std::size_t bytes) {
    const std::lock_guard lock(access_to_blocks);
    ++allocations;
    void* memory = ::operator new(bytes, kAlignment);
    std::memset(memory, 0xFF, bytes);
    blocks[memory] = bytes;
    if (keep) {
      keep->push_back(memory);
      kept_blocks[memory] = false;
    }
    return memory;
  }
  static void release(void* memory) {
    if (memory && !is_kept(memory)) free_block(memory);
  }
  static bool is_kept(void* memory) {
    const std::lock_guard lock(access_to_blocks);
    const auto kept = kept_blocks.find(memory);
    if (kept == kept_blocks.end()) return false;
    return kept->second = true;
  }
};

// Page-locked memory of the host.
std::set<const void*> page_locked;
class PageLockedAllocator final : public HostMemory {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const std::lock_guard lock(access_to_blocks);
    void* memory = ::operator new(bytes, kAlignment);
    page_locked.insert(memory);
    return {memory, memory, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static void release(void* memory) {
    const std::lock_guard lock(access_to_blocks);
    page_locked.erase(memory);
    ::operator delete(memory, kAlignment);
  }
};

const bool allocator_registered = [] {
  static Allocator allocator;
  c10::SetAllocator(c10::kCUDA, &allocator);
  return true;
}();

}  // namespace

c10::Allocator* page_locked_allocator() {
  static PageLockedAllocator allocator;
  return &allocator;
}
bool is_page_locked(const void* memory) {
  const std::lock_guard lock(access_to_blocks);
  return page_locked.contains(memory);
}

std::int64_t device_allocations() {
  const std::lock_guard lock(access_to_blocks);
  return allocations;
}

MemoryImage memory_image() {
  const std::lock_guard lock(access_to_blocks);
  MemoryImage image;
  for (const auto& [memory, bytes] : blocks)
    image.emplace_back(memory, std::string(static_cast<const char*>(memory), bytes));
  return image;
}

void restore_memory(const MemoryImage& image) {
  const std::lock_guard lock(access_to_blocks);
  for (const auto& [memory, content] : image)
    if (const auto block = blocks.find(memory);
        block != blocks.end() && block->second == content.size())
      std::memcpy(memory, content.data(), content.size());
}

void keep_memory(std::vector<void*>* kept) {
  const std::lock_guard lock(access_to_blocks);
  keep = kept;
}

void free_memory(const std::vector<void*>& kept) {
  const auto forget = [](void* memory) {
    const std::lock_guard lock(access_to_blocks);
    const bool unused = kept_blocks.at(memory);
    kept_blocks.erase(memory);
    return unused;
  };
  for (void* memory : kept)
    if (forget(memory)) free_block(memory);
}

const void* block_begin(const void* memory) {
  const std::lock_guard lock(access_to_blocks);
  const auto block = block_around(memory);
  return block == blocks.end() ? nullptr : block->first;
}
std::optional<std::pair<const void*, std::string>> block_of(const void* memory) {
  const std::lock_guard lock(access_to_blocks);
  const auto block = block_around(memory);
  if (block == blocks.end()) return std::nullopt;
  const auto* begin = static_cast<const char*>(block->first);
  return std::pair(static_cast<const void*>(begin), std::string(begin, block->second));
}

}  // namespace zsq::test
