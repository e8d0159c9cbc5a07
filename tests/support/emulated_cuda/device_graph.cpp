// SPDX-License-Identifier: Apache-2.0
// In place of cuda_kernels/device_graph.cpp. What is launched while a body is recorded runs, so
// that the body can go on, and then every block of memory gets back what it held; a replay runs the
// same launches again, with the arguments of then.
#include "cuda_kernels/device_graph.h"

#include "core/error.h"
#include "tests/support/emulated_cuda/device.h"
#include "tests/support/emulated_cuda/device_internals.h"
#include "tests/support/emulated_cuda/grid.h"

namespace zsq::cuda_kernels {
namespace {

class EmulatedGraph : public DeviceGraph {
 public:
  ~EmulatedGraph() override { forget(); }

  void warm_up(const std::function<void()>& body) override {
    test::host_waits_for_all();
    body();
    test::host_waits_for_all();
  }

  void record(const std::function<void()>& body) override {
    test::host_waits_for_all();
    forget();
    const auto before = test::memory_image();
    const auto done = [&] {
      emulated_cuda::recording = nullptr;
      test::keep_memory(nullptr);
      test::restore_memory(before);
    };
    emulated_cuda::recording = &launches_;
    test::keep_memory(&memory_);
    try {
      const test::NoWaiting rule;
      body();
    } catch (...) {
      done();
      forget();
      throw;
    }
    done();
  }

  void replay() override {
    if (launches_.empty()) throw Error(ErrorCode::internal, "CUDA graph: nothing was recorded");
    for (const auto& launch : launches_) launch();
  }

 private:
  void forget() {
    if (!launches_.empty()) test::host_waits_for_all();
    launches_.clear();
    test::free_memory(memory_);
    memory_.clear();
  }
  std::vector<std::function<void()>> launches_;
  std::vector<void*> memory_;
};

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph(c10::Device) {
  return std::make_unique<EmulatedGraph>();
}

}  // namespace zsq::cuda_kernels
