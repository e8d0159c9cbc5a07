// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_leaky_relu.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

constexpr double kEps = 0.8, kSlope = 0.2;

// In double, by plain operators. gamma, beta [C] or [N, C].
at::Tensor truth_of(const at::Tensor& x_any, const at::Tensor& gamma, const at::Tensor& beta) {
  const at::Tensor x = x_any.to(at::kDouble);
  const at::Tensor mean = x.mean({0, 2, 3}, true);
  const at::Tensor variance = (x - mean).square().mean({0, 2, 3}, true);
  const auto along = [&](const at::Tensor& t) {
    return t.to(at::kDouble).reshape({gamma.dim() == 2 ? -1 : 1, x.size(1), 1, 1});
  };
  const at::Tensor u = (x - mean) / (variance + kEps).sqrt() * along(gamma) + along(beta);
  return at::where(u > 0, u, u * kSlope);
}

TEST(BnLeakyRelu, MatchesTruthWithItsGradients) {
  const std::vector<std::vector<std::int64_t>> shapes{
      {6, 3, 4, 4}, {4, 3, 32, 32}, {2, 40, 9, 7}, {3, 300, 5, 5}, {2, 1, 3, 1}};
  for (const auto& shape : shapes) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      for (const bool per_image : {false, true}) {
        const at::Tensor x = leaf((random(shape, 3) + 2).contiguous(format));
        const auto channels =
            per_image ? at::IntArrayRef(shape).slice(0, 2) : at::IntArrayRef(shape).slice(1, 1);
        const at::Tensor gamma = leaf(random(channels) + 1), beta = leaf(random(channels));
        const at::Tensor dy = random(shape);
        const at::Tensor y = bn_leaky_relu(x, gamma, beta, kEps, kSlope);
        const at::Tensor truth = truth_of(x, gamma, beta);
        EXPECT_EQ(y.strides(), x.strides());
        EXPECT_TRUE(at::allclose(y.to(at::kDouble), truth, 1e-4, 1e-5)) << x.sizes();
        truth.backward(dy.to(at::kDouble));
        std::vector<at::Tensor> expected;
        for (const at::Tensor& t : {x, gamma, beta}) {
          expected.push_back(t.grad());
          t.mutable_grad() = at::Tensor();
        }
        y.backward(dy);
        EXPECT_TRUE(at::allclose(x.grad(), expected[0], 1e-3, 1e-5)) << x.sizes();
        EXPECT_TRUE(at::allclose(gamma.grad(), expected[1], 1e-3, 1e-4)) << x.sizes();
        EXPECT_TRUE(at::allclose(beta.grad(), expected[2], 1e-3, 1e-4)) << x.sizes();
      }
    }
  }
}

TEST(BnLeakyRelu, InBf16RoundsOnce) {
  const at::Tensor x = random({3, 20, 6, 6}).to(at::kBFloat16), gamma = random({20}),
                   beta = random({20}), dy = random({3, 20, 6, 6}).to(at::kBFloat16);
  const at::Tensor here = leaf(x), wide = leaf(x.to(at::kFloat));
  const at::Tensor y = bn_leaky_relu(here, gamma, beta, kEps, kSlope),
                   truth = bn_leaky_relu(wide, gamma, beta, kEps, kSlope);
  EXPECT_TRUE(at::equal(y, truth.to(at::kBFloat16)));
  EXPECT_TRUE(
      at::equal(gradient(y, here, dy), gradient(truth, wide, dy.to(at::kFloat)).to(at::kBFloat16)));
}

TEST(BnLeakyRelu, BadArgumentsAreNamed) {
  const at::Tensor x = at::ones({2, 3, 4, 4}), c = at::ones({3});
  expect_error([&] { bn_leaky_relu(x, at::ones({4}), c, kEps, kSlope); },
               "gamma is Float[4] on cpu, expected Float[3] on cpu");
  expect_error(
      [&] {
        bn_leaky_relu(x, at::ones({2, 3}), c, kEps, kSlope);
      },
      "beta is Float[3] on cpu, expected Float[2, 3] on cpu");
  expect_error([&] { bn_leaky_relu(at::ones({2, 3}), c, c, kEps, kSlope); }, "[N, C, H, W]");
}

}  // namespace
}  // namespace zsq::cuda_kernels
