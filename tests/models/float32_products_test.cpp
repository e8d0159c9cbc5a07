// SPDX-License-Identifier: Apache-2.0
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

// What libtorch's older switches say, as PyTorch asks before torch.export; they throw if the newer
// ones say otherwise.
auto by_older_switches() {
  return std::pair(at::globalContext().allowTF32CuDNN(), at::globalContext().allowTF32CuBLAS());
}

TEST(Float32Products, AreThoseOfThePrecisionAndThenAsBefore) {
  using enum at::Float32Precision;
  const auto before = now();
  const auto older_before = by_older_switches();
  {
    const Float32Products scope(Precision::tf32);
    EXPECT_EQ(now(), std::pair(TF32, TF32));
    EXPECT_EQ(by_older_switches(), std::pair(true, true));
    {
      const Float32Products inner(Precision::fp32);
      EXPECT_EQ(now(), std::pair(IEEE, IEEE));
      EXPECT_EQ(by_older_switches(), std::pair(false, false));
    }
    EXPECT_EQ(now(), std::pair(TF32, TF32));
  }
  EXPECT_EQ(now(), before);
  EXPECT_EQ(by_older_switches(), older_before);
}

}  // namespace
}  // namespace zsq::models
