// SPDX-License-Identifier: Apache-2.0
// The threads of one block, each run until it ends or waits; then those that wait together go on.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/emulated_cuda/fiber.h"
#include "tests/support/emulated_cuda/race_detector.h"

namespace emulated_cuda {

constexpr unsigned kWarp = 32;

class Block {
 public:
  // thread() once as each of `threads` threads, a multiple of kWarp.
  void run(const char* op, unsigned threads, const std::function<void()>& thread,
           std::mt19937_64& random);

  // Called by the running thread.
  struct Place {
    const char* file = "";
    int line = 0;
    bool operator==(const Place&) const = default;
  };
  void wait_for_block(Place place);
  std::uint64_t exchange_down(Place place, unsigned mask, std::uint64_t value, unsigned delta);

 private:
  enum class State { unborn, ready, at_barrier, at_exchange, finished };
  struct Thread {
    State state = State::unborn;
    Fiber* fiber = nullptr;
    Place place;
    std::uint64_t value = 0;  // given to and got from an exchange
    unsigned mask = 0, delta = 0;
  };

  static void fiber_body();
  void run_threads();
  Fiber* idle_fiber();
  void become(unsigned t);
  void resume(unsigned t);
  void wait(State state, Place place);
  bool next_unborn();
  bool release_warps();
  bool release_lanes(unsigned first, unsigned lane);
  bool release_block();
  [[noreturn]] void fail(unsigned t, const char* what) const;

  const char* op_ = "";
  const std::function<void()>* thread_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<unsigned> turns_;  // the order of this round
  unsigned turn_ = 0, running_ = 0, finished_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Fiber*> spent_;  // idle from the next block on: their stacks are no race
  RaceDetector races_;
};

}  // namespace emulated_cuda
