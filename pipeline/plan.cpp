// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>

#include "models/blocks.h"
#include "parallel/ranks.h"
#include "pipeline/images/image_job.h"
#include "pipeline/images/learning_images.h"
#include "pipeline/pace.h"
#include "quant/data_free/linear_groups.h"
#include "quant/student.h"

namespace zsq::pipeline {
namespace {

// What stages take in the teacher's forward passes of one image, by ResNet-20, ResNet-18 and
// EfficientNet-Lite0 (docs/performance.md); within a factor of about two elsewhere.
constexpr double kReconstructionPerStep = 6;  // forward and backward of a student block with drops
constexpr double kFineTuningPerImage = 14;    // generator, teacher and student, both ways
constexpr double kTuningPerImage = 5;         // teacher forward, student both ways
constexpr double kCorrectionPerImage = 10;  // teacher and student, up to each BatchNorm of a block
constexpr double kOptimisedPerStep = 3;     // forward, and back to the pixels or the generator
// Fewer iterations of fine-tuning than this leave a student worse than they found it.
constexpr std::int64_t kFewestIterations = 300, kFewestWithoutGenerator = 60;
constexpr double kHour = 3600;

double seconds_of_images(const Run& run, std::int64_t images, const Pace& pace) {
  if (run.bank.learn.defined()) return 0;
  const auto passes = image_maker(run.recipe.images.source).passes(run.recipe.images, images);
  return kOptimisedPerStep * static_cast<double>(passes) * pace.of_images;
}

std::string time_in_words(double seconds) {
  char text[48];
  if (seconds < 120)
    std::snprintf(text, sizeof text, "%.0f s", std::max(1.0, seconds));
  else if (seconds < 2 * kHour)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else
    std::snprintf(text, sizeof text, "%.0f h", seconds / kHour);
  return text;
}

// Before any stage that learns.
std::string first_stage(const QuantOptions& options) {
  const auto& method = quant::rounding_method(options.weights.rounding);
  const std::string range(enum_name(options.activations.range)),
      title(method.needs_images() ? "rounding without images" : method.title);
  return (range == "bn_statistics" ? "statistics and " : range + " ranges and ") + title;
}

Stage calibration(const Run& run, std::string name) {
  return {std::move(name), 0, 0,
          [&run](quant::Student& student, RunState&, const PartDone&) {
            calibrate(run.context(), run.ranges(), student);
          },
          /*needed=*/true};
}

// A run that plans itself tries one that needs images even where the recipe names none.
const quant::RoundingMethod& method_of(const Recipe& recipe) {
  const auto& method = quant::rounding_method(recipe.quantize.weights.rounding);
  return recipe.process.automatic && !method.needs_images()
             ? quant::rounding_method(WeightRounding::gptq)
             : method;
}

using SharedImages = std::shared_ptr<LearningImages>;

// Rounding and correction become better with more images, and a run without them far worse: the
// stages of `auto` share as many as half of a time budget allows for these two.
std::int64_t most_to_learn_from(const Run& run, const Pace& pace) {
  constexpr std::int64_t kFewest = 64;
  if (!run.recipe.process.automatic || !run.clock.has_budget())
    return std::numeric_limits<std::int64_t>::max();
  const double passes = method_of(run.recipe).passes_per_image + kCorrectionPerImage;
  const double seconds = passes * kFewest * pace.in_fp32 + seconds_of_images(run, kFewest, pace);
  return std::max(kFewest, static_cast<std::int64_t>(run.clock.left() / 2 / seconds * kFewest));
}

double seconds_of_new(const Run& run, LearningImages& learning, std::int64_t images,
                      const Pace& pace) {
  return learning.are_new(images) ? seconds_of_images(run, images, pace) : 0;
}

Stage rounding(const Run& run, const SharedImages& learning, const Pace& pace) {
  const auto& method = method_of(run.recipe);
  const auto images = learning->count(run.recipe.quantize.gptq.images);
  const double seconds = method.passes_per_image * static_cast<double>(images) * pace.in_fp32 +
                         seconds_of_new(run, *learning, images, pace);
  return {std::string(method.title), seconds, seconds,
          [&run, &method, images, learning](quant::Student& student, RunState& state,
                                            const PartDone& done) {
            const double left = run.clock.has_budget() ? run.clock.left(1) / 4 : 0;
            round_weights(run.context(),
                          {.method = method,
                           .images = learning->take({.images = images, .seconds = left}),
                           .memory = run.recipe.reconstruct.memory,
                           .ranges = run.ranges(),
                           .parts_done = state.parts,
                           .on_part_done = done},
                          student);
          }};
}

Stage correction(const Run& run, const SharedImages& learning, const Pace& pace) {
  const auto images = learning->count(run.recipe.quantize.channel_correction);
  const double seconds = kCorrectionPerImage * static_cast<double>(images) * pace.in_fp32 +
                         seconds_of_new(run, *learning, images, pace);
  return {"channel correction", seconds, seconds,
          [&run, images, learning](quant::Student& student, RunState&, const PartDone&) {
            const double left = run.clock.has_budget() ? run.clock.left(1) / 4 : 0;
            const auto made = learning->take({.images = images, .seconds = left});
            correct_channels(run.context(),
                             {.images = made, .memory = run.recipe.reconstruct.memory}, student);
          }};
}

// What reconstruction may take: half of a time budget if fine-tuning follows, else all of it; 0:
// any.
double time_for_reconstruction(const Run& run, const quant::Student& student) {
  if (!run.clock.has_budget()) return 0;
  const bool ends_here = run.recipe.finetune.iterations == 0 || run.recipe.process.automatic;
  const double after =
      ends_here ? run.loading + seconds_of_evaluation(run.context(), run.evaluation(), student)
                : run.recipe.process.time_budget.seconds / 2;
  return std::max(1.0, run.clock.left(1) - after);
}

Stage reconstruction(const Run& run, const SharedImages& learning, const Pace& pace) {
  const ReconstructOptions& o = run.recipe.reconstruct;
  const double steps =
      kReconstructionPerStep * static_cast<double>(o.iterations * o.batch_size) * pace.of_learning;
  const auto images = learning->count(o.images);
  const double seconds =
      steps + seconds_of_new(run, *learning, images, pace) +
      4 * static_cast<double>(images * o.augmentations_per_image) * pace.of_learning;
  return {"block reconstruction", seconds, seconds,
          [&run, &o, learning](quant::Student& student, RunState& state, const PartDone& done) {
            const double budget = time_for_reconstruction(run, student);
            const Stopwatch begin;
            const auto views =
                affordable_views(run.context(), o, student, learning->count(o.images));
            const at::Tensor images =
                learning->take({.images = o.images, .views = views, .seconds = budget / 2});
            reconstruct(run.context(),
                        {.options = o,
                         .images = images,
                         .precision = run.recipe.finetune.precision,
                         .seconds = budget > 0 ? std::max(1.0, budget - begin.seconds()) : 0,
                         .folder = run.output.checkpoint().parent_path(),
                         .blocks = state.blocks,
                         .on_part_done = done},
                        student);
          }};
}

at::Tensor all_images(const std::vector<HeldOutImages>& held_out) {
  std::vector<at::Tensor> images;
  for (const auto& kind : held_out) images.push_back(kind.images);
  return images.empty() ? at::Tensor() : at::cat(images);
}

// What fine-tuning takes instead of a generator's images, or beside them, and what it is checked
// on.
struct TuningImages {
  std::optional<train::BankDraws> draws;
  at::Tensor held_out;  // undefined: the generator makes them
};

TuningImages images_to_tune_on(const Run& run, LearningImages& learning) {
  TuningImages result{run.bank_draws, all_images(run.held_out)};
  const TrainOptions& o = run.recipe.finetune;
  if (o.images == 0) return result;
  const double seconds = run.clock.has_budget() ? run.clock.left(1) / 4 : 0;
  auto images = learning.take({.images = o.images, .seconds = seconds});
  if (!result.held_out.defined() && o.validation_checks > 0 && images.size(0) > 1) {
    const auto n = std::clamp<std::int64_t>(images.size(0) / 4, 1, o.validation_images);
    result.held_out = images.slice(0, 0, n);
    images = images.slice(0, n);
  }
  result.draws.emplace(train::ImageBank{images, {}}, /*share=*/1, run.recipe.images, run.seed());
  return result;
}

Stage fine_tuning(const Run& run, const SharedImages& learning, bool calibrated, const Pace& pace,
                  std::optional<train::TrainReport>& trained) {
  const TrainOptions& o = run.recipe.finetune;
  const double iteration = (o.images > 0 ? kTuningPerImage : kFineTuningPerImage) *
                           static_cast<double>(o.batch_size) * pace.of_batches;
  const auto fewest =
      std::min(o.iterations, o.images > 0 ? kFewestWithoutGenerator : kFewestIterations);
  const double images =
      o.images > 0 ? seconds_of_new(run, *learning, learning->count(o.images), pace) : 0;
  return {
      "fine-tuning", images + static_cast<double>(fewest) * iteration,
      images + static_cast<double>(o.iterations) * iteration,
      [&run, learning, calibrated, &trained](quant::Student& student, RunState&, const PartDone&) {
        const Recipe& recipe = run.recipe;
        const auto images = images_to_tune_on(run, *learning);
        trained =
            fine_tune(run.context(),
                      {.options = recipe.finetune,
                       .generator = recipe.generate,
                       .bank = images.draws ? &*images.draws : nullptr,
                       .noise = run.noise ? &*run.noise : nullptr,
                       .mirror = run.recipe.images.flip,
                       .held_out = images.held_out,
                       .calibrated = calibrated,
                       .seconds = run.clock.has_budget() ? run.clock.left(1) : 0,
                       // Writing takes about as long as reading did.
                       .seconds_after =
                           [&] {
                             return run.loading +
                                    seconds_of_evaluation(run.context(), run.evaluation(), student);
                           },
                       .checkpoint = run.output.checkpoint(),
                       .checkpoint_every = recipe.process.checkpoint_every,
                       .resume = parallel::agreed(parallel::current(),
                                                  std::filesystem::exists(run.output.checkpoint())),
                       .on_images = run.on_images},
                      student);
      }};
}

}  // namespace

std::vector<Stage> plan_stages(const Run& run, std::optional<train::TrainReport>& trained) {
  const Recipe& recipe = run.recipe;
  const bool automatic = recipe.process.automatic;
  const bool rounds = method_of(recipe).needs_images();
  const bool reconstructs = recipe.reconstruct.iterations > 0;
  const bool trains = recipe.finetune.iterations > 0;
  // Helps depthwise networks, and harms others at 3 bits (docs/results.md).
  const bool corrects =
      recipe.quantize.channel_correction > 0 && (!automatic || quant::has_depthwise(run.teacher));
  const Pace pace = rounds || corrects || reconstructs || trains ? measure_pace(run) : Pace();
  const auto learning = std::make_shared<LearningImages>(run, most_to_learn_from(run, pace));
  std::vector<Stage> stages;
  // A stage that may be undone needs one before it.
  if (automatic || (!reconstructs && !rounds && (!trains || run.undoes_stages())))
    stages.push_back(calibration(run, first_stage(run.recipe.quantize)));
  if (rounds) stages.push_back(rounding(run, learning, pace));
  // At few bits rounding alone can look harmful to a depthwise network until its channels have
  // their strength back.
  if (rounds && corrects) stages.back().judged_with_next = true;
  if (!automatic && rounds && !reconstructs && !trains)
    stages.push_back(calibration(run, "calibration"));
  if (corrects) stages.push_back(correction(run, learning, pace));
  if (reconstructs) stages.push_back(reconstruction(run, learning, pace));
  if (trains)
    stages.push_back(fine_tuning(run, learning, /*calibrated=*/!stages.empty(), pace, trained));
  return stages;
}

std::vector<StageResult> tell_plan(const Run& run, const std::vector<Stage>& stages) {
  const bool limited = run.recipe.process.automatic && run.clock.has_budget();
  std::vector<StageResult> plan;
  double left = run.clock.left(), sum = 0;
  bool all_fit = true;
  for (const Stage& stage : stages) {
    const bool fits = !limited || stage.least <= left;
    all_fit = all_fit && fits;
    StageResult result{stage.name, fits ? std::min(stage.estimate, left) : stage.least, 0, "", {}};
    if (!fits)
      result.outcome = "skipped: needs about " + time_in_words(stage.least) + ", " +
                       time_in_words(std::max(0.0, left)) + " are left";
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
    char line[200];
    std::snprintf(line, sizeof line, "  %-32s %s", stage.name.c_str(),
                  stage.outcome.empty() ? ("about " + time_in_words(stage.estimate)).c_str()
                                        : stage.outcome.c_str());
    run.say(line);
  }
  if (!run.clock.has_budget() && sum > kHour)
    run.observer.on_message(LogLevel::warning,
                            "this takes about " + time_in_words(sum) +
                                " on this machine; --recipe auto takes 10 minutes, and "
                                "--time_budget 1h fits this recipe into an hour");
  return plan;
}

}  // namespace zsq::pipeline
