// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/session.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace zsq::pipeline {
namespace {

// libtorch's own convolutions take 10-bit mantissas on a GPU: nothing that is measured may.
TEST(Session, Float32IsIeeeOnGpusFromTheStart) {
  Observer silent;
  start_process(ProcessOptions{}, silent);
  for (const auto op : {at::Float32Op::CONV, at::Float32Op::MATMUL})
    EXPECT_EQ(at::globalContext().float32Precision(at::Float32Backend::CUDA, op),
              at::Float32Precision::IEEE);
}

}  // namespace
}  // namespace zsq::pipeline
