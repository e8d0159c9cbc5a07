// SPDX-License-Identifier: Apache-2.0
// NCCL with the one GPU that a machine has; tests/launch/ranks_test.cpp has the ranks.
#include "launch/nccl.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "cuda_kernels/device.h"

namespace zsq::launch {
namespace {

TEST(NcclOnOneGpu, GivesEachTensorBack) {
  std::string why;
  if (!cuda_kernels::cuda_available(&why)) GTEST_SKIP() << why;
  cuda_kernels::load_cuda();
  const at::Device device(at::kCUDA, 0);
  const Nccl nccl(0, 1, device, [](char*, int) {});
  for (const auto type : {at::kFloat, at::kDouble, at::kLong}) {
    const auto numbers = at::arange(100, type);
    const auto there = numbers.to(device);
    nccl.all_reduce_sum(there);
    nccl.broadcast(there, 0);
    EXPECT_TRUE(there.cpu().equal(numbers));
  }
}

}  // namespace
}  // namespace zsq::launch
