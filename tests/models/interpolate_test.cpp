// SPDX-License-Identifier: Apache-2.0
// Changes of height and width against ATen's, and places worked by hand where ATen has no such
// mode.
#include "models/interpolate.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

using Coordinates = ResizeCoordinates;
using Mode = InterpolationMode;

const auto& map() {
  static const auto x = wave({2, 3, 7, 5});
  return x;
}

void expect_same(const Interpolate& op, const at::Tensor& expected) {
  EXPECT_TRUE(at::allclose(interpolate(op, map()), expected, 1e-4, 1e-5));
}

TEST(Interpolate, LinearAndCubicAreAtensUpAndDown) {
  for (const Pair size : {Pair{13, 11}, Pair{14, 10}, Pair{4, 3}, Pair{1, 1}}) {
    for (const bool corners : {false, true}) {
      const auto coordinates = corners ? Coordinates::align_corners : Coordinates::half_pixel;
      expect_same({size, {}, Mode::linear, coordinates},
                  at::upsample_bilinear2d(map(), size, corners));
      expect_same({size, {}, Mode::cubic, coordinates},
                  at::upsample_bicubic2d(map(), size, corners));
    }
  }
}

TEST(Interpolate, AntialiasIsAtensWhereTheMapShrinks) {
  Interpolate op{{3, 2}, {}, Mode::linear};
  op.antialias = op.exclude_outside = true;
  expect_same(op, at::_upsample_bilinear2d_aa(map(), op.size, false));
  op.mode = Mode::cubic;
  op.cubic_coefficient = -0.5;
  expect_same(op, at::_upsample_bicubic2d_aa(map(), op.size, false));
}

TEST(Interpolate, AsymmetricFloorIsAtensNearest) {
  for (const Pair size : {Pair{13, 11}, Pair{21, 15}, Pair{4, 3}})
    expect_same({size, {}, Mode::nearest, Coordinates::asymmetric, NearestRounding::floor},
                at::upsample_nearest2d(map(), size));
}

// From 5 to 7 places by 1.5, which would be 7.5: half_pixel_symmetric shares the half place between
// both ends, so that place o lies at o / 1.5; tf_half_pixel_for_nn is half a place further than
// half_pixel.
TEST(Interpolate, PlacesOfTheTwoModesThatAtenHasNot) {
  const auto places = [](Coordinates coordinates) {
    const Interpolate op{{7, 7}, {1.5, 1.5}, Mode::linear, coordinates};
    return interpolation_matrix(op, 0, 5).matmul(at::tensor({0.0F, 1.0F, 2.0F, 3.0F, 4.0F}));
  };
  const auto thirds = [](const std::vector<float>& values) { return at::tensor(values).div(3); };
  EXPECT_TRUE(at::allclose(places(Coordinates::half_pixel_symmetric),
                           thirds({0, 2, 4, 6, 8, 10, 12}), 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(places(Coordinates::tf_half_pixel_for_nn),
                           thirds({1, 3, 5, 7, 9, 11, 12}), 1e-5, 1e-5));
}

// From 2 to 4 places: half_pixel lies at -0.25, 0.25, 0.75, 1.25; asymmetric at 0, 0.5, 1, 1.5.
TEST(Interpolate, RoundsHalvesAsAsked) {
  const auto picked = [](Coordinates coordinates, NearestRounding rounding) {
    const Interpolate op{{4, 4}, {}, Mode::nearest, coordinates, rounding};
    return interpolation_matrix(op, 0, 2).argmax(1);
  };
  const auto is = [](const at::Tensor& x, const Ints& y) { return x.equal(ints(y)); };
  using enum NearestRounding;
  EXPECT_TRUE(is(picked(Coordinates::half_pixel, round_prefer_floor), {0, 0, 1, 1}));
  EXPECT_TRUE(is(picked(Coordinates::asymmetric, round_prefer_floor), {0, 0, 1, 1}));
  EXPECT_TRUE(is(picked(Coordinates::asymmetric, round_prefer_ceil), {0, 1, 1, 1}));
  EXPECT_TRUE(is(picked(Coordinates::half_pixel, floor), {0, 0, 0, 1}));
  EXPECT_TRUE(is(picked(Coordinates::half_pixel, ceil), {0, 1, 1, 1}));
}

TEST(Interpolate, OneOutputLiesInTheMiddleOrAtTheStart) {
  Interpolate op{{1, 1}, {}, Mode::linear, Coordinates::half_pixel};
  EXPECT_TRUE(
      at::allclose(interpolation_matrix(op, 0, 4), at::tensor({0.0, 0.5, 0.5, 0.0}, at::kFloat)));
  op.coordinates = Coordinates::pytorch_half_pixel;
  EXPECT_TRUE(
      at::allclose(interpolation_matrix(op, 0, 4), at::tensor({1.0, 0.0, 0.0, 0.0}, at::kFloat)));
}

// A factor of 2.3 makes 4 places of 2; places lie by the factor, not by 4 / 2.
TEST(Interpolate, AGivenFactorCountsBeforeTheSizes) {
  const Interpolate op{{4, 4}, {2.3, 2.3}, Mode::linear, Coordinates::asymmetric};
  const auto row = interpolation_matrix(op, 0, 2)[1];
  EXPECT_NEAR(row[1].item<double>(), 1 / 2.3, 1e-6);
}

}  // namespace
}  // namespace zsq::models
