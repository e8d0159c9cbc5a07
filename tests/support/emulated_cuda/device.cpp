// SPDX-License-Identifier: Apache-2.0
#include "tests/support/emulated_cuda/device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <mutex>

#include "core/error.h"
#include "cuda_kernels/device.h"
#include "tests/support/emulated_cuda/device_internals.h"

namespace zsq::test {
namespace {

std::mutex counting;
std::map<std::string, std::int64_t> counted;
std::atomic<int> forbidden = 0;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Device getDevice() const override { return device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream(current_); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return stream(++streams_);
  }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(++streams_); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const auto before = stream(current_);
    current_ = next.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream s) const override {
    return reinterpret_cast<void*>(s.id());
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream& s) const override {
    host_waits_for(now_on(s.id()));
    count_wait("synchronize");
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    host_waits_for_all();
    count_wait("synchronize");
  }
  void synchronizeEvent(void* event) const override {
    host_waits_for(*static_cast<Event*>(event));
    count_wait("synchronize");
  }
  void record(void** event, const c10::Stream& s, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (!*event) *event = new Event;
    *static_cast<Event*>(*event) = now_on(s.id());
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void* event, const c10::Stream& s) const override {
    wait_for(*static_cast<Event*>(event), s.id());
  }
  bool queryEvent(void*) const override { return true; }
  static c10::StreamId current() { return current_; }

 private:
  static c10::Device device() { return {c10::kCUDA, 0}; }
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, device(), id);
  }
  static thread_local c10::StreamId current_;
  static inline std::atomic<c10::StreamId> streams_ = 0;  // of the pool, given out so far
};
thread_local c10::StreamId Guard::current_ = 0;

const bool guard_registered = [] {
  c10::impl::registerDeviceGuard(c10::kCUDA, new Guard);
  return true;
}();

}  // namespace

c10::StreamId current_stream() { return Guard::current(); }

void count_wait(const std::string& cause) {
  if (forbidden > 0)
    throw Error(ErrorCode::internal, "the host waits for the device where it must not: " + cause);
  const std::lock_guard lock(counting);
  ++counted[cause];
}

std::map<std::string, std::int64_t> waits() {
  const std::lock_guard lock(counting);
  return counted;
}
void reset_waits() {
  const std::lock_guard lock(counting);
  counted.clear();
}
std::string describe_waits() {
  std::string text;
  for (const auto& [cause, count] : waits())
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + cause;
  return text;
}

NoWaiting::NoWaiting() { ++forbidden; }
NoWaiting::~NoWaiting() { --forbidden; }

}  // namespace zsq::test

namespace at {
namespace {

// What libtorch asks its CUDA library, under the name by which it asks.
class CUDAHooks final : public CUDAHooksInterface {
 public:
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  Allocator* getPinnedMemoryAllocator() const override {
    return zsq::test::page_locked_allocator();
  }
  bool isPinnedPtr(const void* memory) const override { return zsq::test::is_page_locked(memory); }
  // The host's: the same seed gives the same numbers.
  Generator getNewGenerator(c10::DeviceIndex) const override {
    return detail::createCPUGenerator();
  }
  const Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const Generator generator = detail::createCPUGenerator();
    return generator;
  }
};
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace
}  // namespace at

// In place of cuda_kernels/device.cpp.
namespace zsq::cuda_kernels {

bool cuda_available(std::string* why) {
  if (why) why->clear();
  return true;
}
void load_cuda() {}

}  // namespace zsq::cuda_kernels
