// SPDX-License-Identifier: Apache-2.0
// A program that was built without MPI or NCCL says so where they are asked for.
#include <gtest/gtest.h>

#include "launch/mpi.h"
#include "launch/nccl.h"
#include "launch/ranks.h"
#include "tests/support/error_message.h"

namespace zsq::launch {
namespace {

TEST(WithoutMpi, ALauncherIsRefused) {
  EXPECT_EQ(mpi_version(), "none");
  const std::string message =
      test::error_message(ErrorCode::usage, [] { start_mpi(4, "mpirun", 1); });
  EXPECT_NE(message.find("mpirun has started 4 processes"), std::string::npos) << message;
  EXPECT_NE(message.find("ZSQ_MPI=0"), std::string::npos) << message;
}

TEST(WithoutNccl, SeveralGpusAreRefused) {
  const std::string message = test::error_message(
      ErrorCode::usage, [] { Nccl(0, 2, at::Device(at::kCUDA, 0), [](char*, int) {}); });
  EXPECT_NE(message.find("NCCL"), std::string::npos) << message;
  EXPECT_NE(message.find("--device cpu"), std::string::npos) << message;
}

}  // namespace
}  // namespace zsq::launch
