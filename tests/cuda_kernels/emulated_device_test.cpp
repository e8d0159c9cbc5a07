// SPDX-License-Identifier: Apache-2.0
// Every test of this program runs on the emulated device. These are of the device itself.
#include <ATen/ops/empty.h>
#include <ATen/ops/index.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cstdlib>

#include "tests/cuda_kernels/helpers.h"
#include "tests/support/emulated_cuda/device.h"
#include "tests/support/emulated_cuda/grid.h"

namespace zsq::test {
namespace {

[[maybe_unused]] const int chosen = setenv("ZSQ_TEST_DEVICE", "cuda", 1);

const at::TensorOptions kGpu = at::device(c10::Device(at::kCUDA, 0)).dtype(at::kFloat);

TEST(EmulatedDevice, TestsRunOnIt) {
  EXPECT_TRUE(at::zeros({2}).is_cuda());
  EXPECT_TRUE(values({1, 2}).is_cuda());
}

TEST(EmulatedDevice, CountsWhatWaits) {
  const at::Tensor x = at::ones({3, 4}, kGpu);
  const auto waits_of = [&](const auto& f) {
    reset_waits();
    f();
    return describe_waits();
  };
  EXPECT_EQ(waits_of([&] { x.add(x).matmul(x.t()).relu_().sum(0); }), "");
  EXPECT_EQ(waits_of([&] { x.sum().item<float>(); }), "1 x _local_scalar_dense");
  EXPECT_EQ(waits_of([&] { x.index({x.gt(0)}); }), "1 x nonzero");
  EXPECT_EQ(waits_of([&] { x.cpu(); }), "1 x copy to the CPU");
  EXPECT_EQ(waits_of([&] { at::ones({2}, at::kCPU).to(at::kCUDA); }), "1 x copy from the CPU");
  const NoWaiting rule;
  EXPECT_THROW(x.nonzero(), Error);
}

TEST(EmulatedDevice, MemoryHoldsNanUntilItIsWritten) {
  EXPECT_TRUE(at::empty({5}, kGpu).isnan().all().item<bool>());
}

TEST(EmulatedDevice, ViewsShareMemory) {
  const at::Tensor x = at::zeros({4, 3}, kGpu);
  x.t().select(0, 1).add_(1);
  EXPECT_EQ(x.sum().item<float>(), 4);
  EXPECT_EQ(x[2][1].item<float>(), 1);
}

}  // namespace
}  // namespace zsq::test
