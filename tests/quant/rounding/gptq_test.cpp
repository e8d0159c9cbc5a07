// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/gptq.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "quant/calibration/ranges.h"
#include "quant/rounding/squant.h"
#include "tests/quant/rounding/one_layer.h"

namespace zsq::quant {
namespace {

TEST(Gptq, ALayersOutputChangesLessThanByNearestRoundingAndBySquant) {
  GptqOptions options;
  options.damping = 1e-3;
  for (const std::int64_t groups : {1, 6}) {
    const auto x = smooth_images(6, 5);
    const auto w = test::normal({12, 6 / groups, 3, 3}, 7);
    const auto grid = weight_grid(w, kSpec, true, WeightRange::mse);
    const auto rounded = round_layer_by_gptq(w, moments_of(groups, x, x, w), grid, kSpec, options);
    const auto error = [&](const at::Tensor& latent, const at::Tensor& scale) {
      return spread(output(groups, x, on_grid(latent, scale, grid.zero_point).sub(w)));
    };
    const double ours = error(rounded.latent, rounded.scale);
    EXPECT_LT(ours, 0.7 * error(w, grid.scale)) << groups;
    EXPECT_LT(ours, 0.8 * error(squant(w, grid, kSpec, false), grid.scale)) << groups;
    const auto codes = codes_of(rounded.latent, rounded.scale, grid.zero_point);
    // No latent weight lies so near to a threshold that a rounding error could change its code.
    EXPECT_TRUE(codes.equal(codes_of(on_grid(rounded.latent, rounded.scale, grid.zero_point),
                                     rounded.scale, grid.zero_point)));
    EXPECT_LT(rounded.latent.sub(on_grid(rounded.latent, rounded.scale, grid.zero_point))
                  .abs()
                  .div(rounded.scale.view({-1, 1, 1, 1}))
                  .max()
                  .item<float>(),
              0.5 - 1.0 / 128);
  }
}

TEST(Gptq, GroupsAreRoundedAlikeByAnyNumberOfThreads) {
  const auto x = smooth_images(40, 5), w = test::normal({40, 1, 3, 3}, 7);
  const auto grid = weight_grid(w, kSpec, true, WeightRange::mse);
  const auto moments = moments_of(40, x, x, w);
  const int threads = at::get_num_threads();
  std::vector<LayerRounding> rounded;
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    rounded.push_back(round_layer_by_gptq(w, moments, grid, kSpec, {}));
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(rounded[0].latent.equal(rounded[1].latent));
  EXPECT_TRUE(rounded[0].scale.equal(rounded[1].scale));
  EXPECT_EQ(rounded[0].error, rounded[1].error);
  EXPECT_GT(rounded[0].error, 0);
}

TEST(Gptq, DriftIsMadeGood) {
  const auto x = smooth_images(6, 5), x_hat = x.mul(0.8);
  const auto w = test::normal({12, 6, 3, 3}, 7);
  const auto spec = weight_spec(8, false, Mode::deploy);
  const auto grid = weight_grid(w.mul(1.3), spec, true, WeightRange::min_max);
  GptqOptions options;
  options.damping = 1e-4;
  const auto moments = moments_of(1, x, x_hat, w);
  const auto error = [&](double drift) {
    options.error_compensation = drift;
    const auto rounded = round_layer_by_gptq(w, moments, grid, spec, options);
    return spread(output(1, x_hat, rounded.latent).sub(output(1, x, w)));
  };
  EXPECT_LT(error(1), 0.01 * error(0));
}

TEST(Gptq, ADeadInputChangesNothing) {
  const auto w = test::normal({8, 6, 3, 3}, 7);
  const auto grid = weight_grid(w, kSpec, true, WeightRange::mse);
  const auto fives = smooth_images(6, 5);
  auto x = fives.clone();
  x.select(1, 2).zero_();
  const auto rounded = round_layer_by_gptq(w, moments_of(1, x, x, w), grid, kSpec, {});
  const auto codes = codes_of(rounded.latent, rounded.scale, grid.zero_point);
  // Its own weights are rounded to nearest, on the grid that was found.
  EXPECT_TRUE(codes.select(1, 2).equal(codes_of(w, rounded.scale, grid.zero_point).select(1, 2)));
  // Those of the others are what they are without it.
  const auto without = [](const at::Tensor& t) {
    return at::cat({t.narrow(1, 0, 2), t.narrow(1, 3, 3)}, 1);
  };
  GptqOptions options;  // the mean square is over fewer inputs
  options.damping *= 5.0 / 6;
  const auto alone = round_layer_by_gptq(
      without(w), moments_of(1, without(x), without(x), without(w)), grid, kSpec, options);
  const auto same = alone.scale.eq(rounded.scale);
  EXPECT_GT(same.sum().item<int>(), 3);
  const auto others = codes_of(alone.latent, alone.scale, grid.zero_point);
  EXPECT_TRUE(others.index({same}).equal(without(codes).index({same})));
  // Nothing is known at all: nearest rounding.
  const auto blind = round_layer_by_gptq(w, moments_of(1, x.mul(0), x.mul(0), w), grid, kSpec, {});
  EXPECT_TRUE(codes_of(blind.latent, blind.scale, grid.zero_point)
                  .equal(codes_of(w, blind.scale, grid.zero_point)));
}

}  // namespace
}  // namespace zsq::quant
