// SPDX-License-Identifier: Apache-2.0
// A function with a stack of its own, which can stop in the middle and go on later. x86-64.
// AddressSanitizer is told of every change of stacks.
#pragma once
#include <cstddef>

namespace emulated_cuda {

class Fiber {
 public:
  // `body` never returns: when it has nothing to do, it leaves.
  explicit Fiber(void (*body)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();  // called outside of fibers; returns when this one leaves
  void begin();   // the first thing that body does
  void leave();   // called on this fiber; returns when it is resumed

 private:
  void* own_ = nullptr;  // stack pointers while the other side runs
  void* caller_ = nullptr;
  void* stack_;
  void *own_fake_ = nullptr, *caller_fake_ = nullptr;  // AddressSanitizer's
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_size_ = 0;
};

}  // namespace emulated_cuda
