// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gtest/gtest.h>

namespace zsq {
namespace {

TEST(Error, CarriesItsCodeAndMessage) {
  const Error error(ErrorCode::bad_input, "x.onnx: is cut");
  EXPECT_EQ(error.code(), ErrorCode::bad_input);
  EXPECT_STREQ(error.what(), "x.onnx: is cut");
}

// The codes that scripts rely on.
TEST(Error, ExitCodes) {
  EXPECT_EQ(exit_code(ErrorCode::internal), 1);
  EXPECT_EQ(exit_code(ErrorCode::numeric_failure), 1);
  EXPECT_EQ(exit_code(ErrorCode::usage), 2);
  EXPECT_EQ(exit_code(ErrorCode::bad_input), 2);
  EXPECT_EQ(exit_code(ErrorCode::accuracy_gate), 3);
  EXPECT_EQ(exit_code(ErrorCode::unsupported_model), 4);
  EXPECT_EQ(exit_code(ErrorCode::out_of_memory), 5);
  EXPECT_EQ(exit_code(ErrorCode::stopped), 75);
}

}  // namespace
}  // namespace zsq
