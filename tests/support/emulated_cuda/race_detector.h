// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer what orders the threads of a block: its start, its barriers, the exchanges
// of its warps and its end. Without ThreadSanitizer it does nothing. Sources that include it are
// compiled without instrumentation (EMULATED_CUDA_TSAN says that others are not): they switch
// stacks.
#pragma once
#include <vector>

#if defined(EMULATED_CUDA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace emulated_cuda {

#if defined(EMULATED_CUDA_TSAN)

class RaceDetector {
 public:
  static constexpr bool kOn = true;
  void begin(unsigned threads) {
    host_ = __tsan_get_current_fiber();
    while (fibers_.size() < threads) fibers_.push_back(__tsan_create_fiber(0));
    barriers_.assign(threads, 0);
    exchanges_.assign(threads, 0);
    __tsan_release(&begin_);
  }
  void end() { __tsan_acquire(&end_); }
  void to_thread(unsigned t) { __tsan_switch_to_fiber(fibers_[t], __tsan_switch_to_fiber_no_sync); }
  void to_host() { __tsan_switch_to_fiber(host_, __tsan_switch_to_fiber_no_sync); }
  void thread_begins() { __tsan_acquire(&begin_); }
  void thread_ends() { __tsan_release(&end_); }
  // The meeting that thread t comes to; of two in turn, because a thread may be at the next barrier
  // before another has left this one.
  char* meeting(unsigned t, bool of_block) {
    return of_block ? &block_[barriers_[t]++ % 2] : &warps_[t / 32][exchanges_[t]++ % 2];
  }
  void arrive(char* meeting) { __tsan_release(meeting); }
  void go_on(char* meeting) { __tsan_acquire(meeting); }

 private:
  void* host_ = nullptr;
  std::vector<void*> fibers_;
  std::vector<unsigned> barriers_, exchanges_;
  char begin_ = 0, end_ = 0, block_[2] = {}, warps_[32][2] = {};
};

#else

class RaceDetector {
 public:
  static constexpr bool kOn = false;
  void begin(unsigned) {}
  void end() {}
  void to_thread(unsigned) {}
  void to_host() {}
  void thread_begins() {}
  void thread_ends() {}
  char* meeting(unsigned, bool) { return nullptr; }
  void arrive(char*) {}
  void go_on(char*) {}
};

#endif

}  // namespace emulated_cuda
