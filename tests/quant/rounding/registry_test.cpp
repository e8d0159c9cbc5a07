// SPDX-License-Identifier: Apache-2.0
// Covers also quant/rounding/adaround.
#include "quant/rounding/registry.h"

#include <gtest/gtest.h>

#include "quant/calibration/ranges.h"
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

}  // namespace
}  // namespace zsq::quant
