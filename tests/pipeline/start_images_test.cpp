// SPDX-License-Identifier: Apache-2.0
#include "pipeline/start_images.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "models/load.h"

namespace zsq::pipeline {
namespace {

Recipe recipe_of(std::int64_t images, std::int64_t views, std::int64_t held_out) {
  Recipe recipe = load_recipe("deploy+reconstruct", {"data.preset=cifar10"});
  recipe.reconstruct.images = images;
  recipe.reconstruct.views = views;
  recipe.process.agreement_images = held_out;
  recipe.images.batch_size = 8;
  recipe.images.steps = 1;
  return recipe;
}

StartImages start(const Recipe& recipe, const at::Tensor& bank) {
  static const models::Model teacher = models::build("resnet20_cifar10", {});
  Observer silent;
  return start_images(teacher, recipe, bank.defined() ? split_bank(bank, recipe) : StartImages{},
                      {.images = recipe.reconstruct.images,
                       .views = recipe.reconstruct.views,
                       .held_out = to_hold_out(recipe)},
                      silent);
}

// Image i is i everywhere, and so is every view of it.
std::multiset<int> numbers(const at::Tensor& images) {
  std::multiset<int> found;
  for (std::int64_t i = 0; i < images.size(0); ++i)
    found.insert(static_cast<int>(std::lround(images[i].mean().item<double>())));
  return found;
}

TEST(StartImages, OfABankAreDrawnOnceAndNeverHeldOutToo) {
  const auto bank = at::arange(20, at::kFloat).view({20, 1, 1, 1}).expand({20, 3, 32, 32});
  const auto images = start(recipe_of(10, 1, 4), bank.contiguous());
  const auto learn = numbers(images.learn), held_out = numbers(images.held_out);
  EXPECT_EQ(learn.size(), 10U);
  EXPECT_EQ(held_out.size(), 4U);
  std::set<int> all(learn.begin(), learn.end());
  all.insert(held_out.begin(), held_out.end());
  EXPECT_EQ(all.size(), 14U);
  // All that a small bank has, a quarter of it held out at most.
  const auto few = start(recipe_of(1000, 1, 8), bank.contiguous());
  EXPECT_EQ(few.learn.size(0), 15);
  EXPECT_EQ(few.held_out.size(0), 5);
}

TEST(StartImages, HaveViews) {
  const auto bank = at::rand({12, 3, 32, 32});
  const auto one = start(recipe_of(8, 1, 4), bank).learn;
  const auto three = start(recipe_of(8, 3, 4), bank).learn;
  ASSERT_EQ(three.size(0), 24);
  EXPECT_TRUE(three.slice(0, 0, 8).equal(one));
  EXPECT_FALSE(three.slice(0, 8, 16).equal(one));
  EXPECT_FALSE(three.slice(0, 8, 16).equal(three.slice(0, 16, 24)));
  const auto flat = at::arange(12, at::kFloat).view({12, 1, 1, 1}).expand({12, 3, 32, 32});
  const auto seen = numbers(start(recipe_of(8, 3, 4), flat.contiguous()).learn);
  for (const int image : std::set<int>(seen.begin(), seen.end())) EXPECT_EQ(seen.count(image), 3U);
}

TEST(StartImages, AreMadeWithinThePreset) {
  const auto images = start(recipe_of(9, 1, 4), {});
  EXPECT_EQ(images.learn.size(0), 9);
  EXPECT_EQ(images.held_out.size(0), 4);
  // Pixels 0 and 255 of the preset's first channel.
  const auto red = images.learn.select(1, 0);
  EXPECT_GE(red.min().item<float>(), (0 - 0.485f) / 0.229f - 1e-5f);
  EXPECT_LE(red.max().item<float>(), (1 - 0.485f) / 0.229f + 1e-5f);
}

TEST(StartImages, AreDrawnWithinThePreset) {
  Recipe recipe = recipe_of(9, 2, 4);
  recipe.images.source = ImageSource::drawn;
  const auto images = start(recipe, {});
  ASSERT_EQ(images.learn.size(0), 18);
  ASSERT_EQ(images.held_out.size(0), 4);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 9; ++j) EXPECT_FALSE(images.held_out[i].equal(images.learn[j]));
  // Black and white are there, and nothing beyond: pixels 0 and 255 of the first channel.
  const auto red = images.learn.select(1, 0);
  EXPECT_NEAR(red.min().item<float>(), (0 - 0.485f) / 0.229f, 1e-5f);
  EXPECT_NEAR(red.max().item<float>(), (1 - 0.485f) / 0.229f, 1e-5f);
  recipe.data.preset.clear();
  recipe.quantize.image_lo = -1;
  recipe.quantize.image_hi = 3;
  const auto other = start(recipe, {}).learn;
  EXPECT_NEAR(other.min().item<float>(), -1, 1e-5f);
  EXPECT_NEAR(other.max().item<float>(), 3, 1e-5f);
}

}  // namespace
}  // namespace zsq::pipeline
