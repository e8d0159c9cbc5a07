// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_moments.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>

#include "tests/cuda_kernels/helpers.h"
#include "tests/reference/bn_clip_fake_quant.h"

namespace zsq::cuda_kernels::bn_clip_moments_test {
namespace {

using namespace zsq::test;

struct Case {
  at::Tensor x, gamma, beta, mean, variance;
  std::optional<at::Tensor> residual;
  BnClipMomentsArgs args;

  BnClipMoments run() const {
    return bn_clip_moments(x, residual, gamma, beta, mean, variance, args);
  }
  at::Tensor y_truth() const {
    return reference::bn_clip(x, gamma, beta, mean, variance, args.eps, args.lo, args.hi, residual);
  }
};

Case make_case(at::IntArrayRef shape, at::MemoryFormat format, bool residual) {
  const std::int64_t c = shape[1];
  Case made{leaf((random(shape, 2) + 0.3).contiguous(format)),
            random({c}),
            random({c}),
            random({c}),
            at::rand({c}) + 0.1,
            std::nullopt,
            {.lo = 0, .hi = 6}};
  if (residual) made.residual = leaf(random(shape).contiguous(format));
  return made;
}

TEST(BnClipMoments, MatchesTruthWithItsGradients) {
  const std::vector<std::vector<std::int64_t>> shapes{
      {2, 3, 5, 7}, {3, 16, 32, 32}, {4, 300, 3, 3}, {2, 1, 1, 1}};
  for (const auto& shape : shapes) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      for (const bool residual : {false, true}) {
        const Case c = make_case(shape, format, residual);
        const auto [y, mean, variance] = c.run();
        EXPECT_EQ(y.strides(), c.x.strides());
        const at::Tensor y_truth = c.y_truth();
        EXPECT_TRUE(same_bits(y, y_truth)) << c.x.sizes();
        const at::Tensor rows = c.x.to(at::kDouble).transpose(0, 1).flatten(1);
        EXPECT_TRUE(at::allclose(mean.to(at::kDouble), rows.mean(1), 1e-5, 1e-6));
        EXPECT_TRUE(at::allclose(variance.to(at::kDouble), rows.var(1, false), 1e-5, 1e-6));

        const at::Tensor dy = random(shape), a = random({shape[1]}), b = random({shape[1]});
        const auto loss = [&](const at::Tensor& out, const at::Tensor& m, const at::Tensor& v) {
          return (out * dy).sum() + (a * m).sum() + (b * v).sum();
        };
        loss(y_truth, rows.mean(1), rows.var(1, false)).backward();
        const at::Tensor dx = c.x.grad().clone();
        c.x.mutable_grad() = at::Tensor();
        at::Tensor dresidual;
        if (residual) {
          dresidual = c.residual->grad().clone();
          c.residual->mutable_grad() = at::Tensor();
        }
        loss(y, mean, variance).backward();
        EXPECT_TRUE(at::allclose(c.x.grad(), dx, 1e-4, 1e-6)) << c.x.sizes();
        if (residual) {
          EXPECT_TRUE(same_bits(c.residual->grad().abs(), dresidual.abs()));
        }
      }
    }
  }
}

TEST(BnClipMoments, WithoutClipNothingIsCut) {
  Case c = make_case({2, 3, 8, 8}, at::MemoryFormat::ChannelsLast, false);
  c.args = {};
  EXPECT_TRUE(same_bits(c.run().y, c.y_truth()));
  EXPECT_LT(c.run().y.min().item<float>(), 0);
}

TEST(BnClipMoments, BadArgumentsAreNamed) {
  Case c = make_case({2, 3, 4, 4}, at::MemoryFormat::Contiguous, false);
  c.residual = at::ones({2, 3, 1, 1});
  expect_error([&] { c.run(); }, "bn_clip_moments: residual is Float[2, 3, 1, 1] on cpu");
  c = make_case({0, 3, 4, 4}, at::MemoryFormat::Contiguous, false);
  expect_error([&] { c.run(); }, "at least one element");
}

}  // namespace
}  // namespace zsq::cuda_kernels::bn_clip_moments_test
