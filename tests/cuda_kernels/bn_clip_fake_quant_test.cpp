// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_fake_quant.h"

#include <ATen/Parallel.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/cuda_kernels/helpers.h"
#include "tests/reference/bn_clip_fake_quant.h"

namespace zsq::cuda_kernels::bn_clip_fake_quant_test {
namespace {

using namespace zsq::test;

struct Case {
  at::Tensor x, gamma, beta, mean, variance, scale, zero_point;
  BnClipFakeQuantArgs args;
  std::optional<at::Tensor> residual = std::nullopt;

  at::Tensor run() const {
    return bn_clip_fake_quant(x, residual, gamma, beta, mean, variance, scale, zero_point, args);
  }
  at::Tensor clip_truth() const {
    return reference::bn_clip(x, gamma, beta, mean, variance, args.eps, args.lo, args.hi, residual);
  }
  at::Tensor truth() const {
    return reference::fake_quant(clip_truth(), scale, zero_point, args.qmin, args.qmax);
  }
};

Case make_case(at::IntArrayRef shape, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  const std::int64_t c = shape[1];
  return {leaf((random(shape, 2) + 0.3).contiguous(format)),
          leaf(random({c})),
          leaf(random({c})),
          random({c}),
          at::rand({c}) + 0.1,
          at::scalar_tensor(0.13f),
          at::scalar_tensor(0.0f),
          {.lo = 0, .hi = 6, .qmin = 0, .qmax = 15}};
}

TEST(BnClipFakeQuant, HandWorkedExample) {
  // gain 2 / sqrt(4) = 1, offset 1 - 3 = -2: u = x - 2, clipped to [0, 6], step 0.5, codes 0..7.
  const at::Tensor one = at::ones({1});
  const at::Tensor x = values({1, 2.6f, 3.25f, 5, 20}).reshape({1, 1, 1, 5});
  BnClipFakeQuantArgs args{.eps = 0, .lo = 0, .hi = 6, .qmin = 0, .qmax = 7};
  const at::Tensor y = bn_clip_fake_quant(x, {}, 2 * one, one, 3 * one, 4 * one,
                                          at::scalar_tensor(0.5f), at::scalar_tensor(0.0f), args);
  EXPECT_TRUE(same_bits(y.flatten(), values({0, 0.5f, 1, 3, 3.5f})));  // 1.25 / 0.5 ties to 2
}

TEST(BnClipFakeQuant, MatchesTruthInBothMemoryFormats) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{
             {2, 3, 5, 7}, {1, 1, 1, 1}, {3, 40, 1, 1}, {2, 17, 33, 31}, {4, 512, 7, 7}}) {
      Case c = make_case(shape, format);
      for (const bool residual : {false, true}) {
        if (residual) c.residual = random(shape);
        const at::Tensor y = c.run();
        EXPECT_EQ(y.strides(), c.x.strides());
        EXPECT_TRUE(same_bits(y, c.truth())) << c.x.sizes();
      }
    }
  }
}

TEST(BnClipFakeQuant, AgreesWithBatchNormToOneCode) {
  const Case c = make_case({4, 8, 9, 9});
  const at::Tensor u =
      at::batch_norm(c.x, c.gamma, c.beta, c.mean, c.variance, false, 0, c.args.eps, false);
  const at::Tensor y = reference::fake_quant(u.clamp(0, 6), c.scale, c.zero_point, 0, 15);
  const at::Tensor differ = (y - c.run()).abs() / c.scale;
  EXPECT_LE(differ.max().item<float>(), 1.0001f);
  EXPECT_LT((differ > 0.5).sum().item<std::int64_t>(), 3);
}

TEST(BnClipFakeQuant, NoUpperClip) {
  Case c = make_case({2, 3, 8, 8});
  c.args.hi = kInf;
  c.beta = c.beta + 6;
  EXPECT_TRUE(same_bits(c.run(), c.truth()));
  EXPECT_GT(c.clip_truth().max().item<float>(), 6);
}

TEST(BnClipFakeQuant, GradientsMatchTheStatedSurrogate) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    for (const Surrogate surrogate : {Surrogate::clipped, Surrogate::pass_through}) {
      Case c = make_case({3, 20, 11, 13}, format);
      c.args.surrogate = surrogate;
      c.scale.fill_(0.3);  // codes 0..15 end at 4.5, below the clip at 6
      c.residual = leaf(random(c.x.sizes()));
      const at::Tensor dy = random(c.x.sizes());
      const at::Tensor truth = reference::straight_through(c.clip_truth(), c.scale, c.zero_point, 0,
                                                           15, surrogate == Surrogate::clipped);
      std::vector<at::Tensor> expected;
      truth.backward(dy);
      for (const at::Tensor& t : {c.x, c.gamma, c.beta, *c.residual}) {
        expected.push_back(t.grad());
        t.mutable_grad() = at::Tensor();
      }
      c.run().backward(dy);
      EXPECT_TRUE(same_bits(at::abs(c.x.grad()), at::abs(expected[0])));
      EXPECT_EQ(c.x.grad().strides(), c.x.strides());
      EXPECT_TRUE(at::allclose(c.gamma.grad(), expected[1], 1e-4, 1e-3));
      EXPECT_TRUE(at::allclose(c.beta.grad(), expected[2], 1e-4, 1e-3));
      EXPECT_TRUE(same_bits(at::abs(c.residual->grad()), at::abs(expected[3])));
    }
  }
}

TEST(BnClipFakeQuant, GradientByFiniteDifferencesWhereRoundingIsFine) {
  // With steps so small that rounding does not matter and a clip that does not bind, y follows u,
  // and the gradients are the slopes of the affine function.
  Case c = make_case({2, 2, 6, 6});
  c.scale.fill_(1e-5);
  c.args = {.lo = -50, .hi = 50, .qmin = -(1 << 23), .qmax = 1 << 23};
  const at::Tensor weight = random({2, 2, 6, 6});
  const auto loss = [&] { return (c.run() * weight).to(at::kDouble).sum(); };
  loss().backward();
  for (const at::Tensor& parameter : {c.gamma, c.beta, c.x}) {
    for (std::int64_t i = 0; i < 2; ++i) {
      const double h = 0.1;
      at::Tensor entry = parameter.detach().view({-1})[i];
      entry += h;
      const double above = loss().item<double>();
      entry -= 2 * h;
      const double below = loss().item<double>();
      entry += h;
      EXPECT_NEAR(parameter.grad().view({-1})[i].item<float>(), (above - below) / (2 * h), 1e-3);
    }
  }
}

TEST(BnClipFakeQuant, GradientStopsAtTheClip) {
  const at::Tensor one = at::ones({1}), zero = at::zeros({1});
  const at::Tensor x = leaf(values({-1, 0, 1, 5.9f, 6, 7, kNan}).reshape({1, 1, 1, 7}));
  BnClipFakeQuantArgs args{.eps = 0, .lo = 0, .hi = 6, .qmin = 0, .qmax = 15};
  const at::Tensor y = bn_clip_fake_quant(x, {}, one, zero, zero, one, at::scalar_tensor(0.4f),
                                          at::scalar_tensor(0.0f), args);
  EXPECT_TRUE(std::isnan(y.flatten()[6].item<float>()));
  const at::Tensor dx = gradient(y, x, at::ones_like(x)).flatten();
  EXPECT_TRUE(same_bits(dx, values({0, 0, 1, 1, 0, 0, 0})));
}

TEST(BnClipFakeQuant, TheNumberOfThreadsChangesNothing) {
  const Case c = make_case({4, 24, 30, 30});
  const at::Tensor dy = random(c.x.sizes());
  std::vector<at::Tensor> grads;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    c.gamma.mutable_grad() = at::Tensor();
    c.run().backward(dy);
    grads.push_back(c.gamma.grad());
  }
  EXPECT_TRUE(same_bits(grads[0], grads[1]));
}

TEST(BnClipFakeQuant, EmptyAndBadArguments) {
  Case c = make_case({0, 3, 4, 4});
  c.run().sum().backward();
  EXPECT_TRUE(same_bits(c.gamma.grad(), at::zeros({3})));
  c = make_case({2, 3, 4, 4});
  Case bad = c;
  bad.x = at::ones({2, 3});
  expect_error([&] { bad.run(); },
               "bn_clip_fake_quant: x is Float[2, 3] on cpu, expected [N, C, H, W]");
  bad = c;
  bad.mean = at::ones({4});
  expect_error([&] { bad.run(); }, "mean is Float[4] on cpu, expected Float[3] on cpu");
  bad = c;
  bad.scale = at::ones({3});
  expect_error([&] { bad.run(); }, "scale is Float[3]");
  bad = c;
  bad.args.hi = 0;
  expect_error([&] { bad.run(); }, "lo < hi");
}

}  // namespace
}  // namespace zsq::cuda_kernels::bn_clip_fake_quant_test
