// SPDX-License-Identifier: Apache-2.0
#include "tests/support/emulated_cuda/fiber.h"

#include <sys/mman.h>

#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
namespace {
void __sanitizer_start_switch_fiber(void**, const void*, std::size_t) {}
void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*) {}
}  // namespace
#endif

// Saves the registers that a call preserves and the stack pointer in *from, and goes on where `to`
// was saved: swapcontext without its system calls.
extern "C" void emulated_cuda_switch(void** from, void* to);
asm(R"(
.text
.type emulated_cuda_switch, @function
emulated_cuda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulated_cuda_switch, .-emulated_cuda_switch
)");

namespace emulated_cuda {
namespace {
constexpr std::size_t kStack = 256 << 10, kPage = 4096, kSavedRegisters = 6;
}

Fiber::Fiber(void (*body)())
    : stack_(mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  if (stack_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(stack_, kPage, PROT_NONE);  // a stack that grows too large hits it
  auto** top = reinterpret_cast<void**>(static_cast<char*>(stack_) + kStack);
  *--top = nullptr;                        // the return address of body
  *--top = reinterpret_cast<void*>(body);  // where the first switch returns to
  for (std::size_t i = 0; i < kSavedRegisters; ++i) *--top = nullptr;
  own_ = top;
}

Fiber::~Fiber() { munmap(stack_, kStack); }

void Fiber::resume() {
  __sanitizer_start_switch_fiber(&caller_fake_, stack_, kStack);
  emulated_cuda_switch(&caller_, own_);
  __sanitizer_finish_switch_fiber(caller_fake_, nullptr, nullptr);
}

void Fiber::begin() {
  __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_size_);
}

void Fiber::leave() {
  __sanitizer_start_switch_fiber(&own_fake_, caller_stack_, caller_stack_size_);
  emulated_cuda_switch(&own_, caller_);
  __sanitizer_finish_switch_fiber(own_fake_, &caller_stack_, &caller_stack_size_);
}

}  // namespace emulated_cuda
