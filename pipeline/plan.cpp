// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "models/blocks.h"
#include "pipeline/images/image_job.h"
#include "quant/student.h"

namespace zsq::pipeline {
namespace {

// What stages take in units of the teacher's forward pass for one image, measured on ResNet-20,
// ResNet-18 and EfficientNet-Lite0 (docs/performance.md); within a factor of about two elsewhere.
constexpr double kRoundingPerImage = 36;      // both networks, layer by layer from a block's start
constexpr double kReconstructionPerStep = 6;  // forward and backward of a student block with drops
constexpr double kFineTuningPerImage = 14;    // generator, teacher and student, both ways
constexpr double kOptimisedPerStep = 3;       // forward, and back to the pixels or the generator
// Fewer iterations of fine-tuning than this leave a student worse than they found it.
constexpr std::int64_t kFewestIterations = 300;
// KL below which a student cannot be told from its teacher, nats per image.
constexpr double kNothingLeft = 1e-3;
constexpr double kHour = 3600;
constexpr const char* kKept = "kept";

// Seconds of the teacher's forward pass for one image: the fastest of a few, which other work on
// the machine disturbs least.
double seconds_per_image(const Run& run) {
  const auto images = dead_leaves(run.teacher, run.recipe, 0, 8, 0);
  double least = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 4; ++pass) {
    const Stopwatch begin;
    train::logits_of(run.teacher.graph, run.teacher.parameters, images);
    least = std::min(least, begin.seconds());
  }
  return least / static_cast<double>(images.size(0));
}

double seconds_of_images(const Run& run, std::int64_t images, double one) {
  const ImageOptions& o = run.recipe.images;
  if (run.bank.learn.defined() || o.source == ImageSource::dead_leaves) return 0;
  const auto per_step = o.source == ImageSource::generator ? o.batch_size : images;
  return kOptimisedPerStep * static_cast<double>(o.steps * per_step) * one;
}

std::string in_words(double seconds) {
  char text[48];
  if (seconds < 120)
    std::snprintf(text, sizeof text, "%.0f s", std::max(1.0, seconds));
  else if (seconds < 2 * kHour)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else
    std::snprintf(text, sizeof text, "%.0f h", seconds / kHour);
  return text;
}

std::string results_in_words(const std::vector<SyntheticResult>& results) {
  std::string words;
  for (const auto& r : results) {
    char text[96];
    std::snprintf(text, sizeof text, "%sKL %.4f, agreement %.1f %% on %s images",
                  words.empty() ? "" : "; ", r.divergence, 100 * r.agreement,
                  r.kind == "dead_leaves" ? "dead-leaves" : r.kind.c_str());
    words += text;
  }
  return words;
}

Stage calibration(const Run& run, const char* name) {
  return {name, 0, 0,
          [&run](quant::Student& student, RunState&, const PartDone&) { calibrate(run, student); }};
}

Stage rounding(const Run& run, double one) {
  const auto images = run.recipe.quantize.gptq.images;
  const double seconds =
      kRoundingPerImage * static_cast<double>(images) * one + seconds_of_images(run, images, one);
  return {"GPTQ-style rounding", seconds, seconds,
          [&run](quant::Student& student, RunState& state, const PartDone& done) {
            round_weights(run, student, state.parts, done);
          }};
}

Stage reconstruction(const Run& run, double one) {
  const ReconstructOptions& o = run.recipe.reconstruct;
  const double steps =
      kReconstructionPerStep * static_cast<double>(o.iterations * o.batch_size) * one;
  const double seconds = steps + seconds_of_images(run, o.images, one) +
                         4 * static_cast<double>(o.images * o.augmentations_per_image) * one;
  return {
      "block reconstruction", seconds, seconds,
      [&run](quant::Student& student, RunState& state, const PartDone& done) {
        const bool ends_here = run.recipe.finetune.iterations == 0 || run.recipe.process.automatic;
        double left = 0;  // half of a time budget if fine-tuning follows, else all of it
        if (run.clock.has_budget())
          left = ends_here ? run.clock.left(1) - run.loading - seconds_of_evaluation(run, student)
                           : run.clock.left(1) - run.recipe.process.time_budget.seconds / 2;
        reconstruct(run, student, run.clock.has_budget() ? std::max(1.0, left) : 0, state.blocks,
                    done);
      }};
}

Stage fine_tuning(const Run& run, bool calibrated, double one,
                  std::optional<train::TrainReport>& trained) {
  const TrainOptions& o = run.recipe.finetune;
  const double iteration = kFineTuningPerImage * static_cast<double>(o.batch_size) * one;
  const auto fewest = std::min(o.iterations, kFewestIterations);
  return {"fine-tuning", static_cast<double>(fewest) * iteration,
          static_cast<double>(o.iterations) * iteration,
          [&run, calibrated, &trained](quant::Student& student, RunState&, const PartDone&) {
            trained = fine_tune(run, student, calibrated,
                                std::filesystem::exists(run.output.checkpoint()));
          }};
}

// Of the student as it is; empty before the first stage and without held-out images.
std::vector<SyntheticResult> last_kept(const RunState& state) {
  for (auto i = static_cast<std::size_t>(state.finished); i-- > 0;)
    if (state.stages[i].outcome == kKept) return state.stages[i].synthetic;
  return {};
}

void leave_out(const Run& run, RunState& state) {
  for (StageResult& stage : state.stages)
    if (stage.outcome.empty()) stage.outcome = "skipped: no further gain is possible";
  run.say(
      "student and teacher agree on nearly every synthetic image: the remaining stages "
      "are skipped");
}

bool helps(const Run& run, const std::vector<SyntheticResult>& now,
           const std::vector<SyntheticResult>& before) {
  return !run.recipe.process.automatic || now.empty() || is_better(now, before);
}

}  // namespace

std::vector<Stage> plan_stages(const Run& run, std::optional<train::TrainReport>& trained) {
  const Recipe& recipe = run.recipe;
  const bool automatic = recipe.process.automatic;
  const bool rounds = automatic || recipe.quantize.weights.rounding == WeightRounding::gptq;
  const bool reconstructs = recipe.reconstruct.iterations > 0;
  const bool trains = recipe.finetune.iterations > 0;
  const double one = rounds || reconstructs || trains ? seconds_per_image(run) : 0;
  std::vector<Stage> stages;
  if (automatic || (!reconstructs && !trains && !rounds))
    stages.push_back(calibration(run, "statistics and SQuant rounding"));
  if (rounds) stages.push_back(rounding(run, one));
  if (reconstructs) stages.push_back(reconstruction(run, one));
  if (trains) stages.push_back(fine_tuning(run, automatic || reconstructs, one, trained));
  if (!automatic && rounds && !reconstructs && !trains)
    stages.push_back(calibration(run, "calibration"));
  return stages;
}

std::vector<StageResult> tell_plan(const Run& run, const std::vector<Stage>& stages) {
  const bool limited = run.recipe.process.automatic && run.clock.has_budget();
  std::vector<StageResult> plan;
  double left = run.clock.left(), sum = 0;
  bool fits = true;
  for (const Stage& stage : stages) {
    fits = fits && (!limited || stage.least <= left);
    StageResult result{stage.name, fits ? std::min(stage.estimate, left) : stage.least, 0, "", {}};
    if (!fits)
      result.outcome = "skipped: needs about " + in_words(stage.least) + ", " +
                       in_words(std::max(0.0, left)) + " are left";
    else
      left -= result.estimate;
    sum += fits ? result.estimate : 0;
    plan.push_back(std::move(result));
  }
  if (sum < 2 && fits) return plan;  // not worth a word
  run.say(run.clock.has_budget()
              ? "plan, with a time budget of " + in_words(run.recipe.process.time_budget.seconds)
              : "plan");
  for (const StageResult& stage : plan) {
    char line[200];
    std::snprintf(line, sizeof line, "  %-32s %s", stage.name.c_str(),
                  stage.outcome.empty() ? ("about " + in_words(stage.estimate)).c_str()
                                        : stage.outcome.c_str());
    run.say(line);
  }
  if (!run.clock.has_budget() && sum > kHour)
    run.observer.on_message(LogLevel::warning,
                            "this takes about " + in_words(sum) +
                                " on this machine; --recipe auto takes 10 minutes, and "
                                "--time_budget 1h fits this recipe into an hour");
  return plan;
}

void run_stages(const Run& run, const std::vector<Stage>& stages, quant::Student& student,
                RunState& state, const Identity& identity) {
  const auto file = run.output.file("checkpoint/student.safetensors");
  const auto write = [&] {
    state.seconds = run.clock.seconds();
    save(file, state, identity);
  };
  for (auto i = static_cast<std::size_t>(state.finished); i < stages.size(); ++i) {
    StageResult& result = state.stages[i];
    if (!result.outcome.empty()) break;  // skipped, with all that follow
    const auto before = last_kept(state);
    if (run.recipe.process.automatic && !before.empty() && pool(before).divergence < kNothingLeft) {
      leave_out(run, state);
      break;
    }
    const models::Graph graph = student.graph;
    if (state.parts > 0) {
      restore(student, state.now);
    } else {
      state.start = student.parameters.clone();
      write();
    }
    run.say("stage " + std::to_string(i + 1) + " of " + std::to_string(stages.size()) + ": " +
            stages[i].name);
    const Stopwatch begin;
    double written = 0;
    try {
      stages[i].run(student, state, [&](std::int64_t parts) {
        state.parts = parts;
        state.now = student.parameters.clone();
        if (begin.seconds() < written + 30) return;
        written = begin.seconds();
        write();
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::stopped) write();
      throw;
    }
    result.seconds = begin.seconds();
    const auto fused = quant::fuse_activations(student.graph);
    result.synthetic = measure_on(run.held_out, fused, student.parameters);
    result.outcome = kKept;
    if (!before.empty() && !helps(run, result.synthetic, before)) {
      result.outcome = "rejected: KL to the teacher did not decrease";
      student.graph = graph;
      student.parameters = state.start.clone();
    }
    if (!result.synthetic.empty())
      run.say("  " + result.outcome + ": " + results_in_words(result.synthetic));
    state.finished = static_cast<std::int64_t>(i) + 1;
    state.parts = 0;
  }
}

}  // namespace zsq::pipeline
