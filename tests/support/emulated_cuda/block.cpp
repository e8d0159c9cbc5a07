// SPDX-License-Identifier: Apache-2.0
#include "tests/support/emulated_cuda/block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "tests/support/emulated_cuda/grid.h"

namespace emulated_cuda {

Self self;

namespace {
Block* current = nullptr;
}

void Block::run(const char* op, unsigned threads, const std::function<void()>& thread,
                std::mt19937_64& random) {
  current = this;
  op_ = op;
  thread_ = &thread;
  threads_.assign(threads, {});
  turns_.resize(threads);
  std::iota(turns_.begin(), turns_.end(), 0);
  if (order == Order::backward) std::reverse(turns_.begin(), turns_.end());
  finished_ = 0;
  races_.begin(threads);
  while (finished_ < threads) {
    if (order == Order::shuffled) std::shuffle(turns_.begin(), turns_.end(), random);
    run_threads();
    const bool warps = release_warps(), block = release_block();
    if (warps || block || finished_ == threads) continue;
    for (unsigned t = 0; t < threads; ++t)
      if (threads_[t].state != State::finished)
        fail(t, threads_[t].state == State::at_exchange
                    ? "waits for lanes of its warp that do not come"
                    : "waits for threads that do not come");
  }
  races_.end();
  idle_.insert(idle_.end(), spent_.begin(), spent_.end());
  spent_.clear();
}

void Block::run_threads() {
  for (turn_ = 0; turn_ < turns_.size(); ++turn_) {
    const unsigned t = turns_[turn_];
    Thread& thread = threads_[t];
    if (thread.state == State::unborn) {
      thread.fiber = idle_fiber();
      thread.state = State::ready;
    }
    if (thread.state == State::ready) resume(t);
  }
}

Fiber* Block::idle_fiber() {
  if (idle_.empty())
    idle_.push_back(fibers_.emplace_back(std::make_unique<Fiber>(&fiber_body)).get());
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Block::become(unsigned t) {
  running_ = t;
  self.thread = {t, 0, 0};
}

void Block::resume(unsigned t) {
  become(t);
  Fiber* fiber = threads_[t].fiber;
  races_.to_thread(t);
  fiber->resume();
  if (threads_[running_].state == State::finished)
    (RaceDetector::kOn ? spent_ : idle_).push_back(fiber);
}

// A fiber runs one thread after the other: kernels without barriers need no switch in between.
void Block::fiber_body() {
  Block& block = *current;
  Fiber* fiber = block.threads_[block.running_].fiber;
  fiber->begin();
  for (;;) {
    block.races_.thread_begins();
    (*block.thread_)();
    block.threads_[block.running_].state = State::finished;
    ++block.finished_;
    block.races_.thread_ends();
    if (block.next_unborn()) {
      block.threads_[block.running_].state = State::ready;
      block.threads_[block.running_].fiber = fiber;
      continue;
    }
    block.races_.to_host();
    fiber->leave();
  }
}

// Becomes the thread whose turn is next if it has not begun. The race detector needs the host in
// between.
bool Block::next_unborn() {
  if (RaceDetector::kOn || turn_ + 1 == turns_.size()) return false;
  const unsigned t = turns_[turn_ + 1];
  if (threads_[t].state != State::unborn) return false;
  ++turn_;
  become(t);
  return true;
}

void Block::wait(State state, Place place) {
  const unsigned t = running_;
  threads_[t].state = state;
  threads_[t].place = place;
  char* meeting = races_.meeting(t, state == State::at_barrier);
  races_.arrive(meeting);
  races_.to_host();
  threads_[t].fiber->leave();
  races_.go_on(meeting);
}

void Block::wait_for_block(Place place) { wait(State::at_barrier, place); }

std::uint64_t Block::exchange_down(Place place, unsigned mask, std::uint64_t value,
                                   unsigned delta) {
  Thread& thread = threads_[running_];
  thread.value = value;
  thread.mask = mask;
  thread.delta = delta;
  wait(State::at_exchange, place);
  return thread.value;
}

bool Block::release_warps() {
  bool any = false;
  for (unsigned first = 0; first < threads_.size(); first += kWarp)
    for (unsigned lane = 0; lane < kWarp; ++lane)
      if (threads_[first + lane].state == State::at_exchange) any |= release_lanes(first, lane);
  return any;
}

// If all lanes in this lane's mask are at its exchange, each gets what its lane reads.
bool Block::release_lanes(unsigned first, unsigned lane) {
  const Thread own = threads_[first + lane];
  const auto named = [&](unsigned l) { return (own.mask >> l & 1) != 0; };
  if (!named(lane)) fail(first + lane, "exchanges with a mask that leaves itself out");
  std::uint64_t given[kWarp];
  for (unsigned l = 0; l < kWarp; ++l) {
    const Thread& other = threads_[first + l];
    given[l] = other.value;
    if (named(l) && (other.state != State::at_exchange || !(other.place == own.place) ||
                     other.mask != own.mask))
      return false;
  }
  for (unsigned l = 0; l < kWarp; ++l) {
    if (!named(l)) continue;
    Thread& other = threads_[first + l];
    const unsigned from = l + other.delta;
    if (from < kWarp && !named(from)) fail(first + l, "reads a lane that the mask leaves out");
    if (from < kWarp) other.value = given[from];
    other.state = State::ready;
  }
  return true;
}

bool Block::release_block() {
  const auto waits = [](const Thread& t) { return t.state == State::at_barrier; };
  const std::size_t waiting = std::count_if(threads_.begin(), threads_.end(), waits);
  if (waiting == 0 || waiting + finished_ < threads_.size()) return false;
  const Thread& first = *std::find_if(threads_.begin(), threads_.end(), waits);
  for (unsigned t = 0; t < threads_.size(); ++t) {
    threads_[t].place = waits(threads_[t]) ? threads_[t].place : first.place;
    if (!waits(threads_[t])) fail(t, "ended while others wait for the block");
    if (!(threads_[t].place == first.place)) fail(t, "waits for the block at another place");
  }
  for (Thread& thread : threads_) thread.state = State::ready;
  return true;
}

void Block::fail(unsigned t, const char* what) const {
  std::fprintf(stderr, "emulated CUDA: %s, block (%u, %u, %u): thread %u %s, %s:%d\n", op_,
               self.block.x, self.block.y, self.block.z, t, what, threads_[t].place.file,
               threads_[t].place.line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace emulated_cuda
