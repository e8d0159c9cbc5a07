// SPDX-License-Identifier: Apache-2.0
// Ranges of values on dead leaves: tried where a network has no BatchNorm statistics of its own,
// and kept only if the held-out images find the student closer to the float network.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "pipeline/images/missing_batch_norm.h"
#include "pipeline/quantize.h"
#include "pipeline/report/quality.h"
#include "pipeline/run/stage.h"
#include "tests/pipeline/run/plan_fixture.h"
#include "tests/support/network_builder.h"

namespace zsq::pipeline {
namespace {

constexpr const char* kRule = "mse ranges of values";

// Tensors that are linear in the pixels have much shorter tails than the normal distribution that
// statistics imply.
models::Model short_tailed_network(bool with_batch_norm) {
  test::NetworkBuilder net({3, 16, 16});
  auto x = with_batch_norm ? net.conv_bn("a", net.input(), 3, 8, 1)
                           : net.conv("a", net.input(), 3, 8, 1, 1, true);
  x = with_batch_norm ? net.conv_bn("b", x, 8, 8, 1) : net.conv("b", x, 8, 8, 1, 1, true);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 8, test::kShapeClasses), test::kShapeClasses);
}

std::vector<std::string> stages_of(const std::string& recipe_name, models::Model network,
                                   std::vector<std::string> settings = {}) {
  settings.emplace_back("data.preset=cifar10");
  Recipe recipe = load_recipe(recipe_name, settings);
  Observer silent;
  require_statistics(network, recipe, silent);
  std::vector<std::string> names;
  for (const StageKind* kind : stage_kinds())
    if (kind->applies(recipe, network)) names.push_back(kind->name(recipe));
  return names;
}

TEST(ValueRanges, AreTriedAfterCalibrationWithoutBatchNorm) {
  using Names = std::vector<std::string>;
  const auto without = short_tailed_network(false), with = short_tailed_network(true);
  EXPECT_EQ(stages_of("instant", without), (Names{"statistics and SQuant rounding", kRule}));
  EXPECT_EQ(stages_of("instant+gptq+channel_correction", without),
            (Names{"GPTQ-style rounding", "calibration", kRule, "channel correction"}));
  EXPECT_EQ(std::ranges::count(stages_of("auto", without), kRule), 1);
  for (const char* recipe : {"instant", "instant+gptq", "auto"})
    EXPECT_EQ(std::ranges::count(stages_of(recipe, with), kRule), 0) << recipe;
}

// Nothing could judge them, or the recipe asks for a rule itself.
TEST(ValueRanges, AreNotTriedUnjudgedOrAgainstTheRecipe) {
  const auto network = short_tailed_network(false);
  for (const char* setting : {"process.agreement_images=0", "quantize.activations.range=min_max"})
    EXPECT_EQ(std::ranges::count(stages_of("instant", network, {setting}), kRule), 0) << setting;
}

QuantizeReport quantized(bool with_batch_norm, const test::TempFolder& folder) {
  test::save_onnx(short_tailed_network(with_batch_norm), folder / "net.onnx");
  QuantizeOptions options;
  options.scheme = Scheme::parse("W4A4");
  options.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1"});
  return quantize(folder / "net.onnx", options, folder / "out");
}

TEST(ValueRanges, AreKeptWhereTheyAreBetter) {
  const test::TempFolder folder;
  const QuantizeReport report = quantized(false, folder);
  ASSERT_EQ(report.stages.size(), 2U);
  EXPECT_EQ(report.stages[1].outcome, "kept");
  EXPECT_LT(*report.divergence, pool(report.stages[0].synthetic).divergence / 1.5);
  EXPECT_EQ(report.activations, "per_tensor asymmetric mse");
}

TEST(ValueRanges, NeverReplaceStatisticsOfTraining) {
  const test::TempFolder folder;
  const QuantizeReport report = quantized(true, folder);
  EXPECT_EQ(report.stages.size(), 1U);
  EXPECT_EQ(report.activations, "per_tensor asymmetric bn_statistics");
}

void use_min_max(QuantOptions& options) { options.activations.range = ActivationRange::min_max; }

using TrialTest = PlanTest;

// Even if the recipe keeps every other stage.
TEST_F(TrialTest, IsUndoneWithItsOptionsIfItDoesNotHelp) {
  options_.recipe.process.automatic = false;
  options_.recipe.finetune.validation_checks = 0;
  const TheRun run = make_run();
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  std::vector<Stage> stages{calibration(run), scaling("ruin", 16)};
  stages[1].trial = use_min_max;
  RunState state = fresh(run, stages);
  run_stages(run, stages, student, state, {});
  EXPECT_EQ(state.stages[1].outcome.substr(0, 8), "rejected");
  EXPECT_EQ(student.options.activations.range, run.recipe.quantize.activations.range);
}

// Classes that stay what they are gain nothing from ranges that cut rare values off.
TEST_F(TrialTest, IsLeftOutWhereNoClassCanChange) {
  const TheRun run = make_run();
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  const auto nothing = [](quant::Student&, RunState&, const PartDone&) {};
  std::vector<Stage> stages{calibration(run), {"trial", {}, nothing}};
  stages[1].trial = use_min_max;
  RunState state = fresh(run, stages);
  state.finished = 1;
  state.stages[0].outcome = "kept";
  for (const auto& kind : run.held_out)
    state.stages[0].synthetic.push_back({kind.kind, 4, 1e-4, 1.0, 0.5});
  state.start = student.parameters.clone();
  run_stages(run, stages, student, state, {});
  EXPECT_EQ(state.stages[1].outcome, "skipped: no further gain is possible");
  EXPECT_EQ(student.options.activations.range, run.recipe.quantize.activations.range);
}

// Stages that calibrate again must not undo the choice, nor a run that is resumed.
TEST_F(TrialTest, GivesItsOptionsToLaterStages) {
  const TheRun run = make_run();
  std::vector<ActivationRange> seen;
  bool stop = true;
  const auto later = [&](quant::Student& student, RunState&, const PartDone&) {
    seen.push_back(student.options.activations.range);
    if (std::exchange(stop, false)) throw Error(ErrorCode::stopped, "stopped");
  };
  std::vector<Stage> stages{scaling("ruin", 1), calibration(run), {"later", {}, later}};
  stages[0].run = [&](quant::Student& student, RunState& state, const PartDone& done) {
    calibrate(run, student);
    scaling("ruin", 16).run(student, state, done);
  };
  stages[1].trial = use_min_max;
  RunState resumed = stopped(run, stages);
  ASSERT_EQ(resumed.stages[1].outcome, "kept");
  auto again = test::quantized(run.teacher, run.recipe.quantize);
  restore(again, resumed.start);
  run_stages(run, stages, again, resumed, {});
  EXPECT_EQ(seen, (std::vector{ActivationRange::min_max, ActivationRange::min_max}));
}

}  // namespace
}  // namespace zsq::pipeline
