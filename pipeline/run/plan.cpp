// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/plan.h"

#include <algorithm>
#include <limits>

#include "pipeline/run/prepare.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

constexpr double kHour = 3600;

std::string time_in_words(double seconds) {
  if (seconds < 120) return format("%.0f s", std::max(1.0, seconds));
  if (seconds < 2 * kHour) return format("%.0f min", seconds / 60);
  return format("%.0f h", seconds / kHour);
}

// Rounding and correction become better with more images, and a run without them far worse: the
// stages of `auto` share as many as a third of a time budget allows for these two, and at least the
// fewest. Where these do not fit into it, images are those that take no time.
LearningLimit learning_limit(const Run& run, const Pace& pace) {
  constexpr std::int64_t kFewest = 64;
  if (!run.recipe.process.automatic || !run.clock.has_budget()) return {};
  constexpr double kShare = 1.0 / 3, kMost = 0.95;
  const double passes = rounding_of(run.recipe).passes_per_image + kCorrectionPassesPerImage;
  const double learned = passes * kFewest * pace.in_fp32;
  const double made =
      std::min(seconds_of_images(run.recipe, kFewest, pace), seconds_for_images(run));
  const bool too_long = learned + made > kMost * run.clock.left();
  const double all = learned + (too_long ? 0 : made);
  const auto affordable = static_cast<std::int64_t>(kShare * run.clock.left() / all * kFewest);
  return {std::max(kFewest, affordable), too_long};
}

std::string why_skipped(const Stage& stage, double left) {
  const std::string needs = "skipped: needs about " + time_in_words(stage.seconds.least);
  const std::string there = time_in_words(left);
  if (stage.seconds.least > left) return needs + ", " + there + " are left";
  return needs + ", " + format("%.0f %%", 100 * stage.most_share) + " of " + there + " are for it";
}

}  // namespace

std::vector<Stage> plan_stages(const Run& run, std::optional<train::TrainReport>& trained) {
  const auto kinds = stage_kinds_of(run.recipe, run.teacher);
  const bool estimates = std::ranges::any_of(kinds, [](auto* kind) { return kind->seconds; });
  const Pace pace = estimates ? measure_pace(run) : Pace();
  const auto context = std::make_shared<StageContext>(
      run, trained, pace, LearningImages(run, learning_limit(run, pace)));
  std::vector<Stage> stages;
  for (const StageKind* kind : kinds) {
    const StageKind* next = kind == kinds.back() ? nullptr : *(std::ranges::find(kinds, kind) + 1);
    stages.push_back(
        {kind->name(run.recipe), kind->seconds ? kind->seconds(*context) : StageSeconds(),
         [context, kind](quant::Student& student, RunState& state, const PartDone& done) {
           kind->run(*context, student, state, done);
         },
         kind->needed, kind->judged_with && kind->judged_with == next, kind->trial, kind->learns,
         next ? kind->most_share : 1});
  }
  return stages;
}

std::vector<StageResult> tell_plan(const Run& run, const std::vector<Stage>& stages) {
  const bool limited = run.recipe.process.automatic && run.clock.has_budget();
  std::vector<StageResult> plan;
  double left = run.clock.left(), sum = 0;
  bool all_fit = true;
  for (const Stage& stage : stages) {
    const bool fits = !limited || stage.seconds.least <= stage.most_share * left;
    all_fit = all_fit && fits;
    StageResult result{
        stage.name, fits ? std::min(stage.seconds.estimate, left) : stage.seconds.least, 0, "", {}};
    if (!fits)
      result.outcome = why_skipped(stage, std::max(0.0, left));
    else
      left -= result.estimate;
    sum += fits ? result.estimate : 0;
    plan.push_back(std::move(result));
  }
  if (sum < 2 && all_fit) return plan;  // not worth a word
  run.say(run.clock.has_budget() ? "plan, with a time budget of " +
                                       time_in_words(run.recipe.process.time_budget.seconds)
                                 : "plan");
  for (const StageResult& stage : plan) {
    run.say(format("  %-32s %s", stage.name.c_str(),
                   stage.outcome.empty() ? ("about " + time_in_words(stage.estimate)).c_str()
                                         : stage.outcome.c_str()));
  }
  if (!run.clock.has_budget() && sum > kHour)
    run.observer.on_message(LogLevel::warning,
                            "this takes about " + time_in_words(sum) +
                                " on this machine; --recipe auto takes 10 minutes, and "
                                "--time_budget 1h fits this recipe into an hour");
  return plan;
}

}  // namespace zsq::pipeline
