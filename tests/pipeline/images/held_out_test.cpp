// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/held_out.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "models/load.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::pipeline {
namespace {

Recipe recipe_of(std::int64_t images) {
  return load_recipe("instant", {"data.preset=cifar10", "process.threads=1",
                                 "process.agreement_images=" + std::to_string(images)});
}

TEST(HeldOutImages, OptimisedOnesAreAsManyAsLeavesAndHaveNothingInCommon) {
  const test::TempFolder folder;
  setenv("ZSQ_CACHE", (folder / "cache").c_str(), 1);
  Observer observer;
  const auto network = test::train_tiny_network(0);
  const auto kinds =
      held_out_images(network.model, "tiny", recipe_of(36), HeldOutUse::report, {}, observer);
  unsetenv("ZSQ_CACHE");
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].images.size(0), 36);
  const auto& images = kinds[1].images;
  ASSERT_EQ(images.size(0), 36);
  // Pixels that were cut off at an end of the range are the same by chance.
  const auto inside =
      images.gt(images.amin({0, 2, 3}, true)).logical_and(images.lt(images.amax({0, 2, 3}, true)));
  for (std::int64_t i = 0; i < 36; ++i)
    for (std::int64_t j = 0; j < i; ++j) {
      const auto same = images[i].eq(images[j]).logical_and(inside[i]);
      EXPECT_LT(same.to(at::kDouble).mean().item<double>(), 0.01);
    }
}

TEST(HeldOutImages, ANetworkWithPlacesSeesScenes) {
  Observer observer;
  auto model = test::train_tiny_network(0).model;
  const auto kind_of = [&](models::OutputRow kind) {
    model.graph.signature.kind = std::move(kind);
    const auto bank = at::zeros({2, 3, 16, 16});
    return held_out_images(model, "tiny", recipe_of(2), HeldOutUse::report, bank, observer)[0];
  };
  const auto classes = model.classes;
  const auto leaves = kind_of(models::OutputKind::logits);
  const auto row = kind_of(models::OutputRow({{.name = "values", .shape = {classes}}}));
  const auto map = kind_of(models::OutputRow({{.name = "map", .shape = {2, classes / 2}}}));
  EXPECT_EQ(leaves.kind, "dead_leaves");
  EXPECT_EQ(row.kind, "dead_leaves");
  EXPECT_TRUE(row.images.equal(leaves.images));
  EXPECT_EQ(map.kind, "scenes");
  EXPECT_TRUE(map.images[0].equal(leaves.images[0]));  // every second one is of leaves
  EXPECT_FALSE(map.images[1].equal(leaves.images[1]));
}

TEST(HeldOutImages, ALargeNetworkHasFewerAndWhereNothingIsJudgedByThemFewest) {
  const auto of = [](const char* architecture, const char* recipe) {
    const auto network = models::build(architecture, {}, {.zero_weights = true});
    const auto [images, steps] = optimised_images(network, load_recipe(recipe));
    return std::pair(images, steps);
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(of("resnet20_cifar10", "instant"), Pair(64, 20));
  EXPECT_EQ(of("resnet20_cifar10", "auto"), Pair(64, 20));
  EXPECT_EQ(of("efficientnet_lite0", "instant"), Pair(16, 10));
  EXPECT_EQ(of("efficientnet_lite0", "auto"), Pair(33, 20));
  EXPECT_EQ(of("efficientnet_lite0", "deploy"), Pair(33, 20));
}

TEST(HeldOutImages, AReportOnALargeNetworkTakesHalfOfTheLeavesThatChoicesTake) {
  const auto of = [](const char* architecture, HeldOutUse use, std::int64_t wanted) {
    return leaves_to_measure(models::build(architecture, {}, {.zero_weights = true}),
                             recipe_of(wanted), use);
  };
  EXPECT_EQ(of("resnet20_cifar10", HeldOutUse::report, 64), 64);
  EXPECT_EQ(of("efficientnet_lite0", HeldOutUse::report, 64), 32);
  EXPECT_EQ(of("efficientnet_lite0", HeldOutUse::choices, 64), 64);
  EXPECT_EQ(of("resnet50", HeldOutUse::report, 64), 32);
  EXPECT_EQ(of("resnet50", HeldOutUse::report, 8), 8);
}

TEST(HeldOutImages, WhatABankHoldsOutStaysAsItIs) {
  Observer observer;
  const auto network = test::train_tiny_network(0);
  const auto [channels, height, width] = network.model.graph.input_shape;
  const auto bank = at::arange(5 * channels * height * width, at::kFloat)
                        .remainder(7)
                        .view({5, channels, height, width});
  const auto kinds =
      held_out_images(network.model, "tiny", recipe_of(3), HeldOutUse::report, bank, observer);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_TRUE(kinds[1].images.equal(bank.narrow(0, 0, 3)));
}

}  // namespace
}  // namespace zsq::pipeline
