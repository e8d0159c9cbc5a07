// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace zsq {
namespace {

constexpr std::size_t kLarge = 256 << 10;
constexpr std::size_t kPage = 4096, kAlignment = 64;

// At the beginning of its memory; the tensor follows.
struct alignas(kAlignment) Block {
  std::size_t bytes = 0;  // that are mapped, with this; 0: it lies in the heap
};

class KeepingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    void* tensor = n == 0 ? nullptr : block_for(n) + 1;
    return {tensor, tensor, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  // oneDNN's scratchpads are without a tensor.
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  TensorMemory memory() {
    const std::lock_guard lock(mutex_);
    return memory_;
  }

  static KeepingAllocator& instance() {
    static auto& only = *new KeepingAllocator;  // tensors may outlive all static objects
    return only;
  }

 private:
  static void give_back(void* tensor) {
    if (!tensor) return;
    Block* block = static_cast<Block*>(tensor) - 1;
    if (block->bytes == 0)
      c10::free_cpu(block);
    else
      instance().keep(block);
  }

  Block* block_for(std::size_t n) {
    const std::size_t bytes = n + sizeof(Block);
    Block* block = n < kLarge ? nullptr : take((bytes + kPage - 1) / kPage * kPage);
    return block ? block : new (c10::alloc_cpu(bytes)) Block;  // throws if it is out of memory
  }

  Block* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    char* at = take_freed(bytes);
    if (!at) at = map(bytes);
    if (!at) return nullptr;
    memory_.used += static_cast<std::int64_t>(bytes);
    memory_.most_used = std::max(memory_.most_used, memory_.used);
    return new (at) Block{bytes};
  }

  void keep(Block* block) {
    const std::lock_guard lock(mutex_);
    memory_.used -= static_cast<std::int64_t>(block->bytes);
    add(reinterpret_cast<char*>(block), block->bytes);
  }

  // From the beginning of the smallest piece with room.
  char* take_freed(std::size_t bytes) {
    const auto found = by_size_.lower_bound({bytes, nullptr});
    if (found == by_size_.end()) return nullptr;
    const auto [size, at] = *found;
    remove(at, size);
    if (size > bytes) add(at + bytes, size - bytes);
    return at;
  }

  // New ones; in exchange for as many that are free as keep the promise.
  char* map(std::size_t bytes) {
    const auto n = static_cast<std::int64_t>(bytes);
    const auto most = std::max(memory_.most_used, memory_.used + n);
    while (memory_.used + n + memory_.freed > most) unmap_smallest();
    void* at = map_pages(bytes);
    while (at == MAP_FAILED && !pieces_.empty()) {
      unmap_smallest();
      at = map_pages(bytes);
    }
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  }

  static void* map_pages(std::size_t bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) ::madvise(at, bytes, MADV_HUGEPAGE);  // fewer page faults, if it can
    return at;
  }

  void unmap_smallest() {
    const auto [bytes, at] = *by_size_.begin();
    remove(at, bytes);
    ::munmap(at, bytes);
  }

  void remove(char* at, std::size_t bytes) {
    memory_.freed -= static_cast<std::int64_t>(bytes);
    by_size_.erase({bytes, at});
    pieces_.erase(at);
  }

  // Joined with what is free before and after it.
  void add(char* at, std::size_t bytes) {
    auto after = pieces_.lower_bound(at);
    if (after != pieces_.begin()) {
      const auto [before, size] = *std::prev(after);
      if (before + size == at) {
        remove(before, size);
        at = before;
        bytes += size;
      }
    }
    after = pieces_.lower_bound(at);
    if (after != pieces_.end() && at + bytes == after->first) {
      const auto size = after->second;
      remove(after->first, size);
      bytes += size;
    }
    pieces_.emplace(at, bytes);
    by_size_.emplace(bytes, at);
    memory_.freed += static_cast<std::int64_t>(bytes);
  }

  std::mutex mutex_;
  TensorMemory memory_;
  std::map<char*, std::size_t> pieces_;  // that are free, by address
  std::set<std::pair<std::size_t, char*>> by_size_;
};

}  // namespace

void keep_freed_tensors() { c10::SetCPUAllocator(&KeepingAllocator::instance(), 1); }

TensorMemory tensor_memory() { return KeepingAllocator::instance().memory(); }

}  // namespace zsq
