// SPDX-License-Identifier: Apache-2.0
#include "tests/support/emulated_cuda/grid.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/emulated_cuda/block.h"

namespace emulated_cuda {

Order order = Order::forward;
std::uint64_t order_seed = 1;
std::uint64_t launches = 0;
std::vector<std::function<void()>>* recording = nullptr;
int last_error = 0;
void (*watch)(const char* op, const Words& words, const std::function<void()>& run) = nullptr;

namespace {
std::mutex one_at_a_time;
Block block;

void run_grid(const char* op, Dim3 blocks, unsigned threads, const std::function<void()>& thread) {
  const std::lock_guard lock(one_at_a_time);
  ++launches;
  self.grid_size = blocks;
  self.block_size = {threads, 1, 1};
  std::mt19937_64 random(order_seed);
  std::vector<std::uint64_t> turns(std::uint64_t{blocks.x} * blocks.y * blocks.z);
  std::iota(turns.begin(), turns.end(), 0);
  if (order == Order::backward) std::reverse(turns.begin(), turns.end());
  if (order == Order::shuffled) std::shuffle(turns.begin(), turns.end(), random);
  for (const std::uint64_t b : turns) {
    self.block = {static_cast<unsigned>(b % blocks.x),
                  static_cast<unsigned>(b / blocks.x % blocks.y),
                  static_cast<unsigned>(b / blocks.x / blocks.y)};
    block.run(op, threads, thread, random);
  }
}

}  // namespace

void launch_thread(const char* op, Dim3 blocks, unsigned threads, const Words& words,
                   const std::function<void()>& thread) {
  if (auto* kept = recording)
    kept->push_back([=] { launch_thread(op, blocks, threads, words, thread); });
  const auto run = [&] { run_grid(op, blocks, threads, thread); };
  watch ? watch(op, words, run) : run();
}

void wait_for_block(const char* file, int line) { block.wait_for_block({file, line}); }

std::uint64_t exchange_down(unsigned mask, std::uint64_t value, unsigned delta, const char* file,
                            int line) {
  return block.exchange_down({file, line}, mask, value, delta);
}

}  // namespace emulated_cuda
