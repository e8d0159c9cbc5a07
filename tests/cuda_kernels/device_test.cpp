// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/device.h"

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels {
namespace {

TEST(Device, SaysWhyCudaCannotBeUsed) {
  std::string why = "unset";
  if (cuda_available(&why)) {
    EXPECT_EQ(why, "");
    GTEST_SKIP() << "CUDA can be used here";
  }
  EXPECT_NE(why, "");
  EXPECT_FALSE(cuda_available());
  zsq::test::expect_error([] { load_cuda(); }, "CUDA cannot be used: " + why, ErrorCode::usage);
}

}  // namespace
}  // namespace zsq::cuda_kernels
