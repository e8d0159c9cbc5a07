// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/registry.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "quant/calibration/ranges.h"
#include "quant/choose_levels.h"
#include "quant/rounding/adaround.h"
#include "quant/rounding/round_to_levels.h"
#include "tests/quant/rounding/one_layer.h"

namespace zsq::quant {
namespace {

TEST(RoundingMethods, EachHasOneRow) {
  const auto& names = EnumNames<WeightRounding>::names;
  EXPECT_EQ(rounding_methods().size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = static_cast<WeightRounding>(i);
    EXPECT_EQ(rounding_method(name).name, name);
    EXPECT_EQ(needs_images(name), rounding_method(name).needs_images()) << names[i];
  }
}

// What every method that looks at what a layer reads promises.
TEST(RoundingMethods, WithImagesChangeALayersOutputLessThanNearestRounding) {
  const auto x = smooth_images(6, 5);
  const auto w = test::normal({12, 6, 3, 3}, 7);
  const auto grid = weight_grid(w, kSpec, true, WeightRange::mse);
  const auto error = [&](const at::Tensor& latent, const at::Tensor& scale) {
    return spread(output(1, x, on_grid(latent, scale, grid.zero_point).sub(w)));
  };
  const auto moments = moments_of(1, x, x, w);
  for (const RoundingMethod& method : rounding_methods()) {
    if (!method.needs_images()) continue;
    const auto rounded =
        method.round_layer(w, moments, grid, kSpec, GptqOptions{.damping = 1e-3}, {});
    EXPECT_EQ(rounded.scale.sizes(), grid.scale.sizes()) << method.title;
    EXPECT_LT(error(rounded.latent, rounded.scale), 0.7 * error(w, grid.scale)) << method.title;
  }
}

// On level tables, and on a table that is the uniform grid.
TEST(RoundingMethods, WithImagesTakeLevelsOfTheTable) {
  const auto x = smooth_images(6, 5);
  const auto w = test::normal({12, 6, 3, 3}, 7);
  const auto moments = moments_of(1, x, x, w);
  const auto spec = level_table_spec(4, Mode::deploy);
  const auto grids = choose_levels(w.flatten(1), 4, {LevelTable::normal});
  const auto rows = [](const at::Tensor& t) { return t.view({-1, 1, 1, 1}); };
  const double nearest = spread(output(1, x, round_to_levels(w, grids, false).sub(w)));
  for (const RoundingMethod& method : rounding_methods()) {
    if (!method.needs_images()) continue;
    const auto rounded = method.round_layer(w, moments, {grids.scale, at::zeros({12})}, spec,
                                            GptqOptions{.damping = 1e-3}, grids.levels);
    const auto codes = rounded.latent.div(rows(rounded.scale)).flatten(1);
    const auto distance = codes.unsqueeze(2).sub(grids.levels.unsqueeze(1)).abs();
    EXPECT_LT(std::get<0>(distance.min(2)).max().item<float>(), 1e-3) << method.title;
    EXPECT_LT(spread(output(1, x, rounded.latent.sub(w))), 0.7 * nearest) << method.title;
  }
}

TEST(RoundingMethods, AdaRoundOnEvenLevelsIsThatOnTheUniformGrid) {
  const auto x = smooth_images(6, 5);
  const auto w = test::normal({12, 6, 3, 3}, 7);
  const auto moments = moments_of(1, x, x, w);
  const auto grid = weight_grid(w, kSpec, true, WeightRange::mse);
  const auto levels =
      at::arange(kSpec.qmin, kSpec.qmax + 1, at::kFloat).sub(grid.zero_point.unsqueeze(1));
  const auto uniform = round_layer_by_adaround(w, moments, grid, kSpec, {}, {});
  const auto table = round_layer_by_adaround(w, moments, {grid.scale, at::zeros({12})},
                                             level_table_spec(3, Mode::deploy), {}, levels);
  EXPECT_TRUE(table.latent.allclose(uniform.latent, 1e-6, 1e-7));
  EXPECT_NEAR(table.error, uniform.error, 1e-5 * uniform.error);
}

}  // namespace
}  // namespace zsq::quant
