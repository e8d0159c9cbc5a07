// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a kernel on the host: a fiber each, one block after the other. What would be
// undefined on a device ends the program with a line that says where: a barrier or a warp exchange
// that not all threads reach, or that they reach at different places. Races between two barriers
// show under ThreadSanitizer, and as results that depend on the order of the threads; races between
// blocks only as the latter. Accesses outside of memory show under AddressSanitizer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace emulated_cuda {

struct Index {
  unsigned x, y, z;
};
struct Dim3 : Index {
  constexpr Dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : Index{x, y, z} {}
};

// What the running thread sees of itself.
struct Self {
  Index thread, block, block_size, grid_size;
};
extern Self self;

// Of threads between two barriers, and of blocks.
enum class Order { forward, backward, shuffled };
extern Order order;
extern std::uint64_t order_seed;

extern std::uint64_t launches;  // so far
// Where set, every launch is also kept here, to be run again.
extern std::vector<std::function<void()>>* recording;
extern int last_error;  // what the next launch reports, for tests of that
// If set, every launch is run by it; `words` are the parameters, some of them pointers (GCC only).
using Words = std::vector<const void*>;
extern void (*watch)(const char* op, const Words& words, const std::function<void()>& run);

void launch_thread(const char* op, Dim3 blocks, unsigned threads, const Words& words,
                   const std::function<void()>& thread);

// kernel<<<blocks, threads, 0, stream>>>(...): `thread`, a closure over the parameters, calls the
// kernel as one thread. Launches of several host threads wait for each other.
template <class Thread>
void launch(const char* op, Dim3 blocks, unsigned threads, const void* /*stream*/,
            const Thread& thread) {
  Words words;
#if defined(__GNUC__) && !defined(__clang__)
  if (watch) {
    Thread own = thread;
    __builtin_clear_padding(&own);  // of old pointers
    words.resize(sizeof own / sizeof(void*));
    std::memcpy(words.data(), static_cast<const void*>(&own), words.size() * sizeof(void*));
  }
#endif
  launch_thread(op, blocks, threads, words, thread);
}

void wait_for_block(const char* file, int line);
// The value of lane + delta of the warp, the own one where there is none.
std::uint64_t exchange_down(unsigned mask, std::uint64_t value, unsigned delta, const char* file,
                            int line);
template <class T>
T shuffle_down(unsigned mask, T value, unsigned delta, const char* file, int line) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange_down(mask, bits, delta, file, line);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace emulated_cuda
