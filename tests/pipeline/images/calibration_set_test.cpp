// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/calibration_set.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "models/load.h"
#include "tests/support/seed_each_test.h"

namespace zsq::pipeline {
namespace {

Recipe recipe_of(std::int64_t images, std::int64_t views, std::int64_t held_out) {
  Recipe recipe = load_recipe("deploy+reconstruct", {"data.preset=cifar10"});
  recipe.reconstruct.images = images;
  recipe.reconstruct.augmentations_per_image = views;
  recipe.process.agreement_images = held_out;
  recipe.images.batch_size = 8;
  recipe.images.steps = 1;
  return recipe;
}

const models::Model& teacher() {
  static const models::Model network = models::build("resnet20_cifar10", {});
  return network;
}

at::Tensor images_of(const Recipe& recipe, const at::Tensor& bank) {
  Observer silent;
  return calibration_set(
      teacher(), recipe, bank.defined() ? split_bank(bank, recipe).learn : at::Tensor(),
      {.images = recipe.reconstruct.images, .views = recipe.reconstruct.augmentations_per_image},
      silent);
}

// Image i is i everywhere, and so is every view of it.
std::multiset<int> numbers(const at::Tensor& images) {
  std::multiset<int> found;
  for (std::int64_t i = 0; i < images.size(0); ++i)
    found.insert(static_cast<int>(std::lround(images[i].mean().item<double>())));
  return found;
}

TEST(CalibrationSet, OfABankAreDrawnOnceAndNeverHeldOutToo) {
  const auto bank = at::arange(20, at::kFloat).view({20, 1, 1, 1}).expand({20, 3, 32, 32});
  const auto recipe = recipe_of(10, 1, 4);
  const auto learn = numbers(images_of(recipe, bank.contiguous()));
  const auto held_out = numbers(split_bank(bank.contiguous(), recipe).held_out);
  EXPECT_EQ(learn.size(), 10U);
  EXPECT_EQ(held_out.size(), 4U);
  std::set<int> all(learn.begin(), learn.end());
  all.insert(held_out.begin(), held_out.end());
  EXPECT_EQ(all.size(), 14U);
  // All that a small bank has, a quarter of it held out at most.
  const auto few = split_bank(bank.contiguous(), recipe_of(1000, 1, 8));
  EXPECT_EQ(few.learn.size(0), 15);
  EXPECT_EQ(few.held_out.size(0), 5);
}

TEST(CalibrationSet, HaveViews) {
  const auto bank = at::rand({12, 3, 32, 32});
  const auto one = images_of(recipe_of(8, 1, 4), bank);
  const auto three = images_of(recipe_of(8, 3, 4), bank);
  ASSERT_EQ(three.size(0), 24);
  EXPECT_TRUE(three.slice(0, 0, 8).equal(one));
  EXPECT_FALSE(three.slice(0, 8, 16).equal(one));
  EXPECT_FALSE(three.slice(0, 8, 16).equal(three.slice(0, 16, 24)));
  const auto flat = at::arange(12, at::kFloat).view({12, 1, 1, 1}).expand({12, 3, 32, 32});
  const auto seen = numbers(images_of(recipe_of(8, 3, 4), flat.contiguous()));
  for (const int image : std::set<int>(seen.begin(), seen.end())) EXPECT_EQ(seen.count(image), 3U);
}

struct Views {
  at::Tensor plain, changed;
};

// Eight images and two views of each, without and with all of one share. Image i is i * 12
// everywhere: what a view has of another one is not a multiple of 12.
Views views_with(double ImageOptions::*share) {
  const auto bank = at::arange(12, at::kFloat).mul(12).view({12, 1, 1, 1}).expand({12, 3, 32, 32});
  auto recipe = recipe_of(8, 3, 4);
  const auto plain = images_of(recipe, bank.contiguous());
  recipe.images.*share = 1;
  const auto changed = images_of(recipe, bank.contiguous());
  EXPECT_TRUE(changed.slice(0, 0, 8).equal(plain.slice(0, 0, 8)));
  return {plain.slice(0, 8), changed.slice(0, 8)};
}

TEST(CalibrationSet, MixViewsButNotTheImagesThemselves) {
  const auto [plain, mixed] = views_with(&ImageOptions::mixup_share);
  const auto views = mixed.select(1, 0).select(1, 0).select(1, 0);
  EXPECT_LT((mixed - views.view({-1, 1, 1, 1})).abs().max().item<double>(), 1e-3);
  EXPECT_GT((views - plain.mean({1, 2, 3})).abs().min().item<double>(), 1e-3);
  EXPECT_LE(views.max().item<double>(), 11 * 12);
}

TEST(CalibrationSet, CutRectanglesIntoViews) {
  // Every pixel is whole of one image, and most views have two.
  const auto views = views_with(&ImageOptions::cutmix_share).changed.div(12);
  EXPECT_LT((views - views.round()).abs().max().item<double>(), 1e-4);
  EXPECT_GT(views.amax({1, 2, 3}).sub(views.amin({1, 2, 3})).gt(0.5).sum().item<std::int64_t>(), 8);
}

TEST(CalibrationSet, AreMadeWithinThePreset) {
  const auto images = images_of(recipe_of(9, 1, 4), {});
  EXPECT_EQ(images.size(0), 9);
  // Pixels 0 and 255 of the preset's first channel.
  const auto red = images.select(1, 0);
  EXPECT_GE(red.min().item<float>(), (0 - 0.485f) / 0.229f - 1e-5f);
  EXPECT_LE(red.max().item<float>(), (1 - 0.485f) / 0.229f + 1e-5f);
}

TEST(CalibrationSet, AreDrawnWithinThePreset) {
  Recipe recipe = recipe_of(9, 2, 4);
  recipe.images.source = ImageSource::dead_leaves;
  const auto images = images_of(recipe, {});
  ASSERT_EQ(images.size(0), 18);
  // Black and white are there, and nothing beyond: pixels 0 and 255 of the first channel.
  const auto red = images.select(1, 0);
  EXPECT_NEAR(red.min().item<float>(), (0 - 0.485f) / 0.229f, 1e-5f);
  EXPECT_NEAR(red.max().item<float>(), (1 - 0.485f) / 0.229f, 1e-5f);
  recipe.data.preset.clear();
  recipe.quantize.image_lo = -1;
  recipe.quantize.image_hi = 3;
  const auto other = images_of(recipe, {});
  EXPECT_NEAR(other.min().item<float>(), -1, 1e-5f);
  EXPECT_NEAR(other.max().item<float>(), 3, 1e-5f);
}

}  // namespace
}  // namespace zsq::pipeline
