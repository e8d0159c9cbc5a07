// SPDX-License-Identifier: Apache-2.0
#include "recipes/effort.h"

#include <gtest/gtest.h>

#include "core/enum_of.h"

namespace zsq {
namespace {

Recipe effort(const std::string& name, std::int64_t weights, std::int64_t activations,
              std::vector<std::string> more = {}) {
  more.push_back("quantize.weights.num_bits=" + std::to_string(weights));
  more.push_back("quantize.activations.num_bits=" + std::to_string(activations));
  Recipe recipe = load_effort(enum_of<Effort>(name).value(), more);
  require_effect(recipe);
  EXPECT_EQ(recipe.quantize.weights.num_bits, weights);
  EXPECT_EQ(recipe.quantize.activations.num_bits, activations);
  return recipe;
}

TEST(Effort, AddsStepsOfTheTradeOffAtFourBits) {
  const Recipe seconds = effort("seconds", 4, 4), minute = effort("minute", 4, 4),
               minutes = effort("minutes", 4, 4), half_hour = effort("half_hour", 4, 4);
  EXPECT_EQ(seconds.quantize.weights.rounding, WeightRounding::squant);
  EXPECT_TRUE(seconds.quantize.weights.level_tables.empty());
  EXPECT_EQ(minute.quantize.weights.rounding, WeightRounding::gptq);
  EXPECT_EQ(minute.quantize.weights.level_tables, std::vector{LevelTable::normal});
  EXPECT_EQ(minute.quantize.channel_correction, 64);
  EXPECT_EQ(minute.quantize.split_expansion, 5);
  EXPECT_EQ(minute.images.source, ImageSource::dead_leaves);  // which take no time
  EXPECT_EQ(minutes.images.source, ImageSource::mixture);
  EXPECT_EQ(minutes.quantize.weights.level_tables, std::vector{LevelTable::normal});
  EXPECT_EQ(minutes.quantize.channel_correction, 64);
  EXPECT_EQ(minutes.quantize.split_expansion, 20);
  EXPECT_TRUE(half_hour.process.automatic);
  EXPECT_EQ(half_hour.process.time_budget.seconds, 30 * 60);
  for (const Recipe* r : {&seconds, &minute, &minutes}) {
    EXPECT_EQ(r->finetune.iterations, 0);
    EXPECT_EQ(r->reconstruct.iterations, 0);
  }
}

TEST(Effort, DoesNoMoreThanHelps) {
  for (const char* name : {"seconds", "minute", "minutes"})
    EXPECT_EQ(effort(name, 8, 8).quantize.channel_correction, 0) << name;
  for (const char* name : {"minute", "minutes"}) {
    const Recipe r = effort(name, 6, 6);
    EXPECT_EQ(r.quantize.channel_correction, 64) << name;
    EXPECT_EQ(r.quantize.split_expansion, 0) << name;
    EXPECT_EQ(r.images.source, ImageSource::mixture) << name;
  }
  // The table has 16 levels.
  for (const std::int64_t bits : {2, 3, 5, 8})
    EXPECT_TRUE(effort("minutes", bits, 4).quantize.weights.level_tables.empty()) << bits;
}

TEST(Effort, LeavesTheLastWordToTheCommand) {
  EXPECT_EQ(effort("minutes", 4, 4, {"quantize.split_expansion=0"}).quantize.split_expansion, 0);
  EXPECT_EQ(effort("half_hour", 4, 4, {"process.time_budget=5"}).process.time_budget.seconds, 5);
  const Recipe without_bits = load_effort(Effort::seconds);
  EXPECT_EQ(without_bits.quantize.weights.num_bits, 4);
  EXPECT_EQ(without_bits.quantize.activations.num_bits, 4);
}

}  // namespace
}  // namespace zsq
