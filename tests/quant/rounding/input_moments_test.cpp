// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/input_moments.h"

#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/quant/rounding/one_layer.h"

namespace zsq::quant {
namespace {

// A kernel that is 1 at one place gives that place's values.
void expect_those_of_unit_kernels(std::int64_t channels, std::int64_t groups, std::int64_t height) {
  const auto x = smooth_images(channels, 1).add(20),
             x_hat = x.add(test::normal(x.sizes().vec(), 3, 0.3f));
  const std::int64_t in = channels / groups, k = in * height * 3;
  const auto got = moments_of(groups, x, x_hat, at::zeros({groups, in, height, 3}));
  for (std::int64_t g = 0; g < groups; ++g) {
    const auto unit = at::eye(k).view({k, in, height, 3});
    const auto patches = [&](const at::Tensor& t) {
      const auto y = output(1, t.narrow(1, g * in, in), unit).to(at::kDouble);
      const auto rows = y.transpose(0, 1).reshape({k, -1});
      return rows.sub(rows.mean(1, true));
    };
    const auto a = patches(x), b = patches(x_hat);
    const auto n = static_cast<double>(a.size(1));
    const auto near = [](const at::Tensor& p, const at::Tensor& q) {
      return p.sub(q).abs().max().item<double>() < 2e-3;
    };
    EXPECT_TRUE(near(got.quantized[g], at::matmul(b, b.t()).div(n)));
    EXPECT_TRUE(near(got.mixed[g], at::matmul(a, b.t()).div(n)));
    EXPECT_TRUE(near(got.variance[g], a.square().mean(1)));
  }
}

TEST(InputMoments, AreThoseOfTheOutputsOfUnitKernels) {
  for (const std::int64_t groups : {1, 2, 4}) expect_those_of_unit_kernels(4, groups, 3);
  expect_those_of_unit_kernels(19, 19, 4);
}

TEST(InputMoments, OfDrawnPlacesAreNearThoseOfAll) {
  const auto x = smooth_images(3, 1);
  const auto weight = at::zeros({3, 1, 3, 3});
  InputMomentsSum some(convolution(3), weight, 30, 1);
  for (int turn = 0; turn < 40; ++turn) some.add(x, x);
  const auto all = moments_of(3, x, x, weight), drawn = some.moments();
  EXPECT_LT(drawn.quantized.sub(all.quantized).abs().max().item<double>(),
            0.1 * all.quantized.max().item<double>());
  EXPECT_FALSE(drawn.quantized.allclose(all.quantized));
}

TEST(InputMoments, TakeTheVarianceThatIsKnown) {
  const auto x = smooth_images(4, 1);
  auto quiet = x.clone();
  quiet.select(1, 2).fill_(0.5);  // says nothing: only padding shows
  const auto moments = moments_of(4, x, x, at::zeros({4, 1, 3, 3}));
  const auto known = at::full({4}, 7, at::kDouble);
  const auto scaled = with_variance(moments, known);
  EXPECT_LT(scaled.variance.mean(1).sub(7).abs().max().item<double>(), 1e-9);
  for (std::int64_t g = 0; g < 4; ++g) {
    const auto factor = 7 / moments.variance[g].mean().item<double>();
    EXPECT_TRUE(scaled.quantized[g].allclose(moments.quantized[g].mul(factor)));
    EXPECT_TRUE(scaled.mixed[g].allclose(moments.mixed[g].mul(factor)));
  }
}

}  // namespace
}  // namespace zsq::quant
