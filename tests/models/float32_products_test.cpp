// SPDX-License-Identifier: Apache-2.0
// Covers also models/precision.
#include "models/float32_products.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <utility>

namespace zsq::models {
namespace {

auto now() {
  const auto of = [](at::Float32Op op) {
    return at::globalContext().float32Precision(at::Float32Backend::CUDA, op);
  };
  return std::pair(of(at::Float32Op::CONV), of(at::Float32Op::MATMUL));
}

TEST(Float32Products, AreThoseOfThePrecisionAndThenAsBefore) {
  using enum at::Float32Precision;
  const auto before = now();
  {
    const Float32Products scope(Precision::tf32);
    EXPECT_EQ(now(), std::pair(TF32, TF32));
    {
      const Float32Products inner(Precision::fp32);
      EXPECT_EQ(now(), std::pair(IEEE, IEEE));
    }
    EXPECT_EQ(now(), std::pair(TF32, TF32));
  }
  EXPECT_EQ(now(), before);
}

}  // namespace
}  // namespace zsq::models
