// SPDX-License-Identifier: Apache-2.0
// For tests of the CUDA implementation of an operator against its CPU implementation.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cuda_kernels/device.h"
#include "tests/cuda_kernels/helpers.h"
#include "tests/support/emulated_cuda/default_device.h"

namespace zsq::test {

class CpuAndCuda : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!cuda_kernels::cuda_available(&why)) GTEST_SKIP() << why;
    cuda_kernels::load_cuda();
  }
  NamedDevices named_devices_;
};

inline at::Tensor on_gpu(const at::Tensor& t) { return leaf(t.to(at::kCUDA)); }

// f(tensors) on both devices: equal bits.
using Op = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
inline void expect_same_bits(const Op& f, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> moved;
  for (const at::Tensor& t : inputs) moved.push_back(t.to(at::kCUDA));
  const at::Tensor here = f(inputs), there = f(moved);
  EXPECT_EQ(here.strides(), there.strides());
  EXPECT_TRUE(same_bits(here, there.cpu())) << inputs[0].sizes();
}

}  // namespace zsq::test
