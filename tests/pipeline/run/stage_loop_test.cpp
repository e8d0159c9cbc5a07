// SPDX-License-Identifier: Apache-2.0
// Running the stages: what is kept, what is rejected, and what a stopped run goes on with.
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "pipeline/report/quality.h"
#include "tests/pipeline/run/plan_fixture.h"
#include "tests/support/quantized.h"

namespace zsq::pipeline {
namespace {

using RunStagesTest = PlanTest;

TEST_F(RunStagesTest, PutsBackWhatDoesNotHelp) {
  const TheRun run = make_run();
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  const std::vector<Stage> stages{calibration(run), scaling("ruin", 16), scaling("nothing", 1)};
  RunState state = fresh(run, stages);
  run_stages(run, stages, student, state, {});
  ASSERT_EQ(state.stages[0].outcome, "kept");
  EXPECT_EQ(state.stages[1].outcome.substr(0, 8), "rejected");
  EXPECT_GT(pool(state.stages[1].synthetic).divergence, pool(state.stages[0].synthetic).divergence);
  EXPECT_EQ(state.stages[2].outcome.substr(0, 8), "rejected");  // no nearer is not better
  auto calibrated = test::quantized(run.teacher, run.recipe.quantize);
  calibrate(run, calibrated);
  for (const auto& name : calibrated.parameters.names())
    EXPECT_TRUE(student.parameters.at(name).equal(calibrated.parameters.at(name))) << name;
}

// As published.
TEST_F(RunStagesTest, KeepsEveryStageOfARecipeWithoutValidation) {
  options_.recipe.process.automatic = false;
  options_.recipe.finetune.validation_checks = 0;
  const TheRun run = make_run();
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  const std::vector<Stage> stages{calibration(run), scaling("ruin", 16)};
  RunState state = fresh(run, stages);
  run_stages(run, stages, student, state, {});
  EXPECT_EQ(state.stages[1].outcome, "kept");
}

TEST_F(RunStagesTest, PutsBackWhatDoesNotHelpInADeployRecipeToo) {
  options_.recipe = load_recipe("deploy", {"data.preset=cifar10", "process.threads=1"});
  const TheRun run = make_run();
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  const std::vector<Stage> stages{calibration(run), scaling("ruin", 16)};
  RunState state = fresh(run, stages);
  run_stages(run, stages, student, state, {});
  EXPECT_EQ(state.stages[1].outcome.substr(0, 8), "rejected");
}

TEST_F(RunStagesTest, KeepsWhatIsNeeded) {
  const TheRun run = make_run();
  auto student = test::quantized(run.teacher, run.recipe.quantize);
  std::vector<Stage> stages{calibration(run), scaling("ruin", 16)};
  stages[1].needed = true;
  RunState state = fresh(run, stages);
  run_stages(run, stages, student, state, {});
  EXPECT_EQ(state.stages[1].outcome, "kept");
}

TEST_F(RunStagesTest, JudgesAStageByWhatTheNextMakesOfIt) {
  const TheRun run = make_run();
  const auto outcomes = [&](double next) {
    auto student = test::quantized(run.teacher, run.recipe.quantize);
    std::vector<Stage> stages{calibration(run), scaling("worse", 2), scaling("ruin", 2),
                              scaling("next", next)};
    stages[1].needed = true;
    stages[2].judged_with_next = true;
    RunState state = fresh(run, stages);
    run_stages(run, stages, student, state, {});
    EXPECT_EQ(state.finished, 4);
    EXPECT_EQ(state.stages[2].outcome, state.stages[3].outcome);
    auto calibrated = test::quantized(run.teacher, run.recipe.quantize);
    calibrate(run, calibrated);
    const auto scale = image_scale(student);
    return std::pair(state.stages[3].outcome.substr(0, 8),
                     student.parameters.at(scale).item<double>() /
                         calibrated.parameters.at(scale).item<double>());
  };
  EXPECT_EQ(outcomes(1. / 4), std::pair(std::string("kept"), 1.));
  EXPECT_EQ(outcomes(2), std::pair(std::string("rejected"), 2.));
}

// Stopped in a stage that decides on the one before it, a run begins with that one again.
TEST_F(RunStagesTest, ResumesWithTheFirstOfTwoThatAreJudgedTogether) {
  const TheRun run = make_run();
  bool stop = true;
  std::string ran;
  const auto stage = [&](const char* name, double factor, bool stops) {
    return Stage{
        name,
        {},
        [&, name, factor, stops](quant::Student& student, RunState& state, const PartDone& done) {
          ran += name;
          if (stops && stop) throw Error(ErrorCode::stopped, "stopped");
          if (!stops && state.parts == 1) return;  // was finished
          scaling(name, factor).run(student, state, done);
          if (!stops) done(1);
        }};
  };
  std::vector<Stage> stages{calibration(run), scaling("worse", 2), stage("a", 2, false),
                            stage("b", 1. / 4, true)};
  stages[1].needed = true;
  stages[2].judged_with_next = true;
  RunState resumed = stopped(run, stages);
  stop = false;
  EXPECT_EQ(resumed.finished, 2);
  auto again = test::quantized(run.teacher, run.recipe.quantize);
  restore(again, resumed.start);
  run_stages(run, stages, again, resumed, {});
  EXPECT_EQ(ran, "abab");
  EXPECT_EQ(resumed.stages[2].outcome, "kept");
  const auto scale = image_scale(again);
  EXPECT_NEAR(again.parameters.at(scale).item<double>() * 2, resumed.start.at(scale).item<double>(),
              1e-6);
}

// Stopped between two parts of its second stage, a run goes on with the parts that are finished.
TEST_F(RunStagesTest, GoesOnWithTheFinishedParts) {
  const TheRun run = make_run();
  std::vector<std::int64_t> ran;
  bool stop = true;
  const auto parts = [&](quant::Student& student, RunState& state, const PartDone& done) {
    const auto scale = image_scale(student);
    for (std::int64_t part = state.parts; part < 3; ++part) {
      if (stop && part == 2) throw Error(ErrorCode::stopped, "stopped");
      student.parameters.set(scale, student.parameters.at(scale) * 1.5);
      ran.push_back(part);
      done(part + 1);
    }
  };
  const std::vector<Stage> stages{calibration(run), {"parts", 0, 0, parts}};
  RunState resumed = stopped(run, stages);
  stop = false;
  EXPECT_EQ(resumed.finished, 1);
  EXPECT_EQ(resumed.parts, 2);
  auto again = test::quantized(run.teacher, run.recipe.quantize);
  restore(again, resumed.start);
  const auto scale = again.parameters.at(image_scale(again)).item<double>();
  run_stages(run, stages, again, resumed, {});
  EXPECT_EQ(ran, (std::vector<std::int64_t>{0, 1, 2}));
  // Three times 1.5, if it was not rejected; then it is the calibrated one.
  const double now = again.parameters.at(image_scale(again)).item<double>();
  EXPECT_NEAR(now, resumed.stages[1].outcome == "kept" ? scale * 3.375 : scale, 1e-6);
}

}  // namespace
}  // namespace zsq::pipeline
