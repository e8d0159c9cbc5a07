// SPDX-License-Identifier: Apache-2.0
#include "generator/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <gtest/gtest.h>

namespace zsq::generator {
namespace {

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

TEST(UpsampledConv, EqualsUpsamplingThenConvolving) {
  for (const auto layout : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const auto image = at::randn({3, 5, 4, 6}).contiguous(layout);
    const auto kernel = at::randn({7, 5, 3, 3});
    const auto x0 = image.clone().requires_grad_(true), x1 = image.clone().requires_grad_(true);
    const auto w0 = kernel.clone().requires_grad_(true), w1 = kernel.clone().requires_grad_(true);
    const auto plain = at::conv2d(at::upsample_nearest2d(x0, {8, 12}), w0, {}, 1, 1);
    const auto fast = upsampled_conv(x1, w1);
    ASSERT_EQ(fast.sizes(), plain.sizes());
    EXPECT_LT(relative_error(fast, plain), 1e-5);
    EXPECT_TRUE(fast.is_contiguous(layout));
    const auto upstream = at::randn_like(plain);
    plain.backward(upstream);
    fast.backward(upstream);
    EXPECT_LT(relative_error(x1.grad(), x0.grad()), 1e-5);
    EXPECT_LT(relative_error(w1.grad(), w0.grad()), 1e-5);
  }
}

TEST(BatchNorm, GivesEachImageItsOwnScaleAndShift) {
  const auto x = at::randn({6, 3, 4, 4}) * 3 + 2;
  const auto gamma = at::rand({6, 3}), beta = at::randn({6, 3});
  const auto rows = x.transpose(0, 1).flatten(1);
  const auto mean = rows.mean(1).view({1, 3, 1, 1});
  const auto variance = rows.var(1, false).view({1, 3, 1, 1});
  const auto normal = (x - mean) / (variance + 0.8).sqrt();
  const auto expected = normal * gamma.view({6, 3, 1, 1}) + beta.view({6, 3, 1, 1});
  EXPECT_LT(relative_error(batch_norm(x, gamma, beta, 0.8), expected), 1e-5);
  EXPECT_LT(relative_error(batch_norm(x, {}, {}, 0.8), normal), 1e-5);
  EXPECT_LT(relative_error(batch_norm(x, gamma[0], beta[0], 0.8),
                           normal * gamma[0].view({3, 1, 1}) + beta[0].view({3, 1, 1})),
            1e-5);
}

}  // namespace
}  // namespace zsq::generator
