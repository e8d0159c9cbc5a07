// SPDX-License-Identifier: Apache-2.0
// Which stages a run has, what it says of them before it begins, and what it needs to be resumed.
#include "pipeline/run/plan.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/run/stages/reconstruct.h"
#include "quant/paired_blocks.h"
#include "tests/pipeline/run/plan_fixture.h"
#include "tests/support/error_message.h"
#include "tests/support/quantized.h"

namespace zsq::pipeline {
namespace {

TEST_F(PlanTest, LeavesOutWhatDoesNotFitAndGoesOn) {
  options_.recipe.process.time_budget.seconds = 100;
  const TheRun run = make_run();
  std::string ran;
  const auto stage = [&](const char* name, double least, double estimate) {
    return Stage{name,
                 {least, estimate},
                 [&ran, name](quant::Student&, RunState&, const PartDone&) { ran += name; }};
  };
  const std::vector<Stage> stages{stage("a", 1, 30), stage("b", 80, 80), stage("c", 60, 90),
                                  stage("d", 1, 1)};
  RunState state;
  state.stages = tell_plan(run, stages);
  EXPECT_EQ(state.stages[0].outcome, "");
  EXPECT_EQ(state.stages[1].outcome.substr(0, 8), "skipped:");
  EXPECT_EQ(state.stages[2].outcome, "");
  EXPECT_LE(state.stages[2].estimate, 70);
  EXPECT_EQ(state.stages[3].outcome.substr(0, 8), "skipped:");  // c takes all that is left
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  run_stages(run, stages, student, state, {});
  EXPECT_EQ(ran, "ac");
  EXPECT_EQ(state.finished, 3);
}

// A stage that is often undone takes a part of the time; alone it may take all.
TEST_F(PlanTest, LeavesOutWhatTakesMoreThanItsShare) {
  options_.recipe.process.time_budget.seconds = 100;
  const TheRun run = make_run();
  const auto nothing = [](quant::Student&, RunState&, const PartDone&) {};
  const Stage half{.name = "half", .seconds = {50, 50}, .run = nothing, .most_share = 0.25};
  const Stage small{.name = "small", .seconds = {20, 20}, .run = nothing, .most_share = 0.25};
  const auto plan = tell_plan(run, {half, small});
  EXPECT_EQ(plan[0].outcome, "skipped: needs about 50 s, 25 % of 100 s are for it");
  EXPECT_EQ(plan[1].outcome, "");
  options_.recipe = load_recipe("auto", {"data.preset=cifar10", "process.threads=1"});
  for (const std::int64_t iterations : {100, 0}) {
    options_.recipe.finetune.iterations = iterations;
    const TheRun planned = make_run();
    std::optional<train::TrainReport> trained;
    const auto stages = plan_stages(planned, trained);
    const auto found = std::ranges::find(stages, "block reconstruction", &Stage::name);
    ASSERT_NE(found, stages.end());
    EXPECT_EQ(found->most_share, iterations > 0 ? 0.25 : 1);
  }
}

class Warnings : public Observer {
 public:
  void on_message(LogLevel level, const std::string& message) override {
    if (level == LogLevel::warning) all += message;
  }
  std::string all;
};

TEST_F(PlanTest, WarnsOfMoreThanAnHour) {
  options_.recipe.process.automatic = false;
  options_.recipe.process.time_budget.seconds = 0;
  Warnings warnings;
  const TheRun run = prepare(folder_ / "shapes.onnx", options_, folder_ / "out", warnings);
  const auto nothing = [](quant::Student&, RunState&, const PartDone&) {};
  tell_plan(run, {{"short", {3000, 3000}, nothing}});
  EXPECT_EQ(warnings.all, "");
  tell_plan(run, {{"long", {1, 8000}, nothing}, {"longer", {1, 8000}, nothing}});
  EXPECT_NE(warnings.all.find("4 h"), std::string::npos) << warnings.all;
  EXPECT_NE(warnings.all.find("--recipe auto"), std::string::npos) << warnings.all;
}

TEST_F(PlanTest, MakesImagesOnceForStagesThatWantAsMany) {
  const auto made = [&](const char* images) {
    options_.recipe = load_recipe(
        "deploy_w3a3", {"data.preset=cifar10", "process.threads=1", "generate.images.steps=2",
                        "reconstruct.iterations=2", "reconstruct.images=8", "finetune.iterations=2",
                        "finetune.batch_size=4", images, "process.agreement_images=4"});
    struct Messages : Observer {
      void on_message(LogLevel, const std::string& text) override {
        count += text.starts_with("generating");
      }
      int count = 0;
    } messages;
    TheRun run = prepare(folder_ / "shapes.onnx", options_, folder_ / images, messages);
    run.output.open("tiny", true, messages);
    run.held_out =
        held_out_images(run.teacher, run.sha256, run.recipe, HeldOutUse::choices, {}, silent_);
    auto student = test::quantized(run.teacher, run.recipe.quantize);
    std::optional<train::TrainReport> trained;
    const auto stages = plan_stages(run, trained);
    EXPECT_EQ(stages.size(), 2u);
    RunState state = fresh(run, stages);
    run_stages(run, stages, student, state, {});
    EXPECT_EQ(trained->iterations, 2);
    return messages.count;
  };
  EXPECT_EQ(made("finetune.images=8"), 1);
  EXPECT_EQ(made("finetune.images=6"), 2);
}

TEST_F(PlanTest, ReconstructsFromAsManyViewsAsMemoryHolds) {
  const TheRun run = make_run();
  const auto student = test::quantized(run.teacher, run.recipe.quantize);
  const auto room = quant::PairedBlocks(run.teacher, student).room(1, at::kBFloat16);
  ASSERT_GT(room, 4);
  struct Messages : Observer {
    void on_message(LogLevel, const std::string& text) override { last = text; }
    std::string last;
  } messages;
  const auto views = [&](std::int64_t images) {
    messages.last.clear();
    ReconstructOptions options;
    options.memory = 1;
    options.augmentations_per_image = 4;
    return affordable_views(run.teacher, student, options, images, messages);
  };
  EXPECT_EQ(views(1), 4);
  EXPECT_EQ(messages.last, "");
  EXPECT_EQ(views(room / 2), 2);
  EXPECT_NE(messages.last.find("2 of reconstruct.augmentations_per_image=4"), std::string::npos)
      << messages.last;
  EXPECT_EQ(views(room), 1);
  EXPECT_EQ(views(10 * room), 1);
}

TEST_F(PlanTest, WarnsOfEightBitWeightsWithZeroPoints) {
  Warnings warnings;
  prepare(folder_ / "shapes.onnx", options_, folder_ / "out", warnings);
  EXPECT_EQ(warnings.all, "");
  options_.recipe.quantize.weights.symmetric = Symmetry::no;
  prepare(folder_ / "shapes.onnx", options_, folder_ / "out", warnings);
  EXPECT_NE(warnings.all.find("zero points"), std::string::npos) << warnings.all;
}

// Under a time budget `auto` rounds and corrects on fewer images than its recipe names, but on 64.
TEST_F(PlanTest, RoundsOnAsManyImagesAsTheBudgetAllows) {
  const auto estimate = [&](double seconds, std::int64_t images) {
    options_.recipe.process.time_budget.seconds = seconds;
    options_.recipe.quantize.gptq.images = images;
    const TheRun run = make_run();
    std::optional<train::TrainReport> trained;
    for (const Stage& stage : plan_stages(run, trained))
      if (stage.name == "GPTQ-style rounding") return stage.seconds.estimate;
    return -1.0;
  };
  constexpr std::int64_t kMany = 1000000;
  const double of_64 = estimate(1, 64);
  EXPECT_LT(estimate(1e-3, kMany), 10 * of_64);  // clocks differ, a thousand images more so
  EXPECT_LT(estimate(20, kMany), 20);
  EXPECT_GT(estimate(20, kMany), 3 * of_64);
}

TEST_F(PlanTest, CorrectsChannelsAfterRounding) {
  options_.recipe = load_recipe("instant+gptq+channel_correction",
                                {"data.preset=cifar10", "process.threads=1",
                                 "quantize.gptq.images=8", "quantize.channel_correction=8"});
  const TheRun run = make_run();
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  std::optional<train::TrainReport> trained;
  const auto stages = plan_stages(run, trained);
  ASSERT_EQ(stages.back().name, "channel correction");
  RunState state = fresh(run, stages);
  for (std::size_t i = 0; i + 1 < stages.size(); ++i)
    stages[i].run(student, state, [](std::int64_t) {});
  const auto before = student.parameters.clone();
  stages.back().run(student, state, {});
  int changed = 0;
  for (const auto& name : before.names()) {
    const bool same = before.at(name).equal(student.parameters.at(name));
    changed += !same;
    EXPECT_TRUE(same || name.ends_with("gamma") || name.ends_with("beta")) << name;
  }
  EXPECT_GT(changed, 0);
}

TEST_F(PlanTest, AStateOfOtherSettingsIsRefused) {
  const TheRun run = make_run();
  RunState state;
  state.start.set("x", run.teacher.parameters.at(run.teacher.parameters.names().front()));
  const auto file = folder_ / "state.safetensors";
  auto identity = identity_of(run.recipe);
  save(file, state, identity);
  EXPECT_NO_THROW(load_run_state(file, identity, at::kCPU));
  // What changes the order of sums changes bits; how kernels are launched does not.
  ASSERT_TRUE(identity.contains("process.threads") && identity.contains("process.device"));
  EXPECT_FALSE(identity.contains("finetune.cuda_graphs"));
  identity["process.threads"] = "7";
  const auto message =
      test::error_message(ErrorCode::usage, [&] { load_run_state(file, identity, at::kCPU); });
  EXPECT_NE(message.find("process.threads"), std::string::npos) << message;
}

// A bank is what it holds, not where it lies.
TEST_F(PlanTest, TheIdentityOfABankIsItsContent) {
  Recipe recipe = load_recipe("deploy");
  recipe.generate.bank = folder_.file("bank", "a");
  const auto first = identity_of(recipe).at("generate.bank");
  const auto moved = folder_.file("moved", "a"), other = folder_.file("bank", "b");
  recipe.generate.bank = moved;
  EXPECT_EQ(identity_of(recipe).at("generate.bank"), first);
  recipe.generate.bank = other;
  EXPECT_NE(identity_of(recipe).at("generate.bank"), first);
}

}  // namespace
}  // namespace zsq::pipeline
