// SPDX-License-Identifier: Apache-2.0
#include "tests/support/emulated_cuda/default_device.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cstdlib>
#include <string_view>

#include "cuda_kernels/device.h"

namespace zsq::test {
namespace {

// A factory of which no device is asked for makes a tensor of the GPU.
void make_on_gpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const NamedDevices from_now_on;
  const auto& arguments = op.schema().arguments();
  const std::size_t begin = stack->size() - arguments.size();
  bool takes_tensors = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& value = (*stack)[begin + i];
    takes_tensors |= value.isTensor() || value.isTensorList();
    if (arguments[i].name() == "device" && value.isNone() && !takes_tensors)
      value = c10::Device(c10::kCUDA, 0);
  }
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&make_on_gpu>());
}

struct OnDefaultDevice : testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    const char* device = std::getenv("ZSQ_TEST_DEVICE");
    if (!device || std::string_view(device) != "cuda" || !cuda_kernels::cuda_available()) return;
    cuda_kernels::load_cuda();
    c10::impl::tls_set_dispatch_key_included(kDefaultDevice, true);
  }
};
const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new OnDefaultDevice);
  return true;
}();

}  // namespace
}  // namespace zsq::test
