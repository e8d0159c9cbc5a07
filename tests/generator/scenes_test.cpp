// SPDX-License-Identifier: Apache-2.0
#include "generator/scenes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "generator/dead_leaves.h"
#include "generator/drawn_text.h"

namespace zsq::generator {
namespace {

constexpr std::array<std::int64_t, 3> kShape{3, 96, 64};

at::Tensor objects(std::int64_t n, const std::array<std::int64_t, 3>& shape) {
  return painted(0, n, shape, 3, [](std::int64_t, Canvas& canvas) { paint_objects(canvas); });
}

TEST(SceneImages, DependOnSeedAndNumberAlone) {
  const auto images = scene_images(0, 8, kShape, 5);
  EXPECT_EQ(images.sizes(), at::IntArrayRef({8, 3, 96, 64}));
  EXPECT_TRUE(scene_images(3, 2, kShape, 5).equal(images.slice(0, 3, 5)));
  EXPECT_FALSE(scene_images(1, 1, kShape, 6).equal(images.slice(0, 1, 2)));
  EXPECT_FALSE(images[1].equal(images[3]));
}

TEST(SceneImages, AreDeadLeavesAndObjectsInTurn) {
  const auto images = scene_images(0, 8, kShape, 5), leaves = dead_leaves_images(0, 8, kShape, 5);
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(images[i].equal(leaves[i]), i % 2 == 0) << i;
}

TEST(SceneImages, AreOfAnySize) {
  for (const auto& shape : {std::array<std::int64_t, 3>{1, 5, 7}, {3, 48, 320}, {4, 200, 9}}) {
    const auto images = scene_images(0, 40, shape, 1);
    EXPECT_GE(images.min().item<float>(), 0);
    EXPECT_LE(images.max().item<float>(), 1);
    EXPECT_FALSE(images.isnan().any().item<bool>());
  }
}

// Largest share of a window's pixels that are alike in brightness, of each image: how much of it
// may be the plain ground that an object stands before.
double plainness(const at::Tensor& images) {
  const auto grey = images.mean(1).flatten(1);
  double sum = 0;
  for (std::int64_t i = 0; i < grey.size(0); ++i)
    sum += grey[i].histc(20, 0, 1).max().item<double>() / static_cast<double>(grey.size(1));
  return sum / static_cast<double>(grey.size(0));
}

TEST(SceneImages, HaveABackground) {
  const std::array<std::int64_t, 3> shape{3, 128, 128};
  EXPECT_GT(plainness(objects(64, shape)), plainness(dead_leaves_images(0, 64, shape, 3)) + 0.05);
}

// A plain grey image with text on it.
at::Tensor text_on_grey(std::int64_t n) {
  return painted(0, n, {1, 128, 128}, 9, [](std::int64_t, Canvas& canvas) {
    canvas.fill({{0.5}, {0}});
    paint_text(canvas);
  });
}

TEST(DrawnText, CoversAPartOfTheImage) {
  const auto share = text_on_grey(60).ne(0.5).to(at::kDouble).mean({1, 2, 3});
  EXPECT_GT(share.gt(0).to(at::kDouble).mean().item<double>(), 0.9);
  EXPECT_LT(share.mean().item<double>(), 0.5);
  EXPECT_GT(share.mean().item<double>(), 0.02);
}

TEST(Canvas, ASurfaceBesideAnotherStandsOut) {
  painted(0, 50, kShape, 2, [](std::int64_t, Canvas& canvas) {
    const auto brightness = [](const Surface& of) {
      return std::accumulate(of.colour.begin(), of.colour.end(), 0.0) / 3;
    };
    canvas.fill(canvas.surface(0));
    const Surface one = canvas.surface(1.3), other = canvas.beside(one);
    // 0 and 1 cut some of it off.
    EXPECT_GT(std::abs(brightness(one) - brightness(other)), 0.15);
  });
}

}  // namespace
}  // namespace zsq::generator
