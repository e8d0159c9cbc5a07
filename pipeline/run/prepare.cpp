// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/prepare.h"

#include <ATen/ops/zeros.h>

#include <numeric>

#include "core/error.h"
#include "core/seed.h"
#include "eval/box_counts.h"
#include "eval/boxed_images.h"
#include "formats/hugging_face.h"
#include "models/load.h"
#include "parallel/ranks.h"
#include "pipeline/images/image_job.h"
#include "pipeline/images/missing_batch_norm.h"
#include "pipeline/run/memory_plan.h"
#include "pipeline/run/rewrite.h"
#include "pipeline/run/state.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "quant/target_rules.h"

namespace zsq::pipeline {
namespace {

void warn_of_zero_points(const QuantOptions& options, Observer& observer) {
  if (options.mode != Mode::deploy || quant::symmetric_weights(options, 8)) return;
  const quant::TargetRules& rules = quant::target_rules(options.target);
  observer.on_message(LogLevel::warning,
                      "quantize.weights.symmetric=false gives 8-bit weights zero points, which " +
                          std::string(rules.name) +
                          " runs slowly: " + std::string(rules.weights.cost_of_zero_points));
}

// Where each rank looks at a clock of its own, they take different ways.
void require_fixed_schedule(const Recipe& recipe, const parallel::Communicator& ranks) {
  if (!parallel::several(ranks) || recipe.process.time_budget.seconds <= 0) return;
  throw Error(
      ErrorCode::usage,
      "a run on " + std::to_string(ranks.size()) +
          " ranks needs a fixed schedule, and this one has a time budget: choose a --recipe "
          "other than auto, with --time_budget 0");
}

Recipe resolve(const QuantizeOptions& options, Observer& observer) {
  Recipe recipe = options.recipe;
  if (options.scheme) {
    recipe.quantize.weights.num_bits = options.scheme->weight_bits;
    recipe.quantize.activations.num_bits = options.scheme->activation_bits;
  }
  validate(recipe);
  require_effect(recipe);
  require_fixed_schedule(recipe, parallel::current());
  warn_of_zero_points(recipe.quantize, observer);
  const bool has_data = !recipe.data.eval_data.empty();
  if (options.min_top1 > 0 && !has_data)
    throw Error(ErrorCode::usage, "min_top1 needs real images to measure with: --eval_data");
  if (options.min_agreement > 0 && recipe.process.agreement_images == 0)
    throw Error(ErrorCode::usage,
                "min_agreement needs synthetic images to measure with: process.agreement_images");
  recipe.process.device = start_process(recipe.process, observer);
  return recipe;
}

double sum_of_macs(const models::Model& model) {
  const auto macs = models::multiply_accumulates(model);
  return static_cast<double>(std::accumulate(macs.begin(), macs.end(), std::int64_t{0}));
}

// The generator's images are made for classes, of which a map or several outputs have none.
void leave_out_fine_tuning_without_classes(Run& run) {
  if (run.teacher.graph.signature.kind.outputs().empty() || run.recipe.finetune.iterations == 0)
    return;
  run.recipe.finetune.iterations = 0;
  run.notes.emplace_back(
      "fine-tuning is left out: its generator makes images of classes, and the network gives "
      "several outputs, or a map");
  run.say(run.notes.back());
}

void open_bank(Run& run) {
  const Recipe& recipe = run.recipe;
  train::ImageBank bank = train::load_bank(recipe.generate.bank, run.teacher);
  if (bank.metadata["source_sha256"] != run.sha256)
    run.observer.on_message(LogLevel::warning, recipe.generate.bank +
                                                   " was not made with this model; its images may "
                                                   "not suit it");
  run.bank = split_bank(bank.images, recipe);
  bank.images = run.bank.learn;
  if (recipe.generate.bank_share > 0)
    run.bank_draws.emplace(std::move(bank), recipe.generate.bank_share, recipe.images, run.seed());
}

std::optional<train::SystemNoise> system_noise(const Run& run) {
  const double share = run.recipe.generate.system_noise;
  if (share == 0) return {};
  if (run.teacher.graph.input_shape[0] != 3)
    throw Error(ErrorCode::usage, "generate.system_noise is for images of three channels");
  const auto preprocessing = preprocessing_of(run.teacher, run.recipe.data);
  train::PixelValues values{.bgr = preprocessing.channel_order == ChannelOrder::bgr};
  for (std::size_t c = 0; c < values.black.size(); ++c) {
    values.black[c] = preprocessing.value(0, c);
    values.white[c] = preprocessing.value(255, c);
  }
  return train::SystemNoise(share, values, run.seed());
}

// Refuses labels of which none can be counted before the work, by the first image.
void open_real_images(Run& run) {
  const DataOptions& data = run.recipe.data;
  run.real_images = eval::open_data(data, run.observer);
  const auto first = run.real_images->load(0, 1);
  require_input_shape(run.teacher, first.images, data.eval_data);
  if (const auto* boxed = dynamic_cast<const eval::BoxedImages*>(run.real_images.get())) {
    static_cast<void>(eval::BoxCounts(run.source.graph, run.source.classes, boxed->file(), data));
    return;
  }
  run.has_masks = first.labels.dim() == 3;
  if (!run.has_masks) return require_classes(first.labels, data.eval_data);
  if (const auto* map = eval::only_map(run.source.graph.signature.kind)) {
    eval::MapCounts().add_rows(*map, at::zeros({1, run.source.classes}), first.labels);
    return;
  }
  run.observer.on_message(LogLevel::warning,
                          data.eval_data +
                              " has masks, which are not counted: the network gives no single map "
                              "of classes (--output NAME=map says that it is one)");
  run.real_images.reset();
}

// What is found at the start may differ between machines: files, a GPU, memory, cores.
void require_same_run(const Run& run) {
  if (!parallel::several(parallel::current())) return;
  std::string settings = "model " + run.sha256 + "\n";
  for (const auto& [key, value] : identity_of(run.recipe))
    settings.append(key).append("=").append(value).append("\n");
  parallel::require_same_text(parallel::current(), settings,
                              "the ranks do not have the same run before them: model, bank, "
                              "device, memory limit and number "
                              "of threads have to be equal on all");
}

}  // namespace

bool undoes_stages(const Recipe& recipe) {
  return recipe.process.automatic || recipe.finetune.validation_checks > 0;
}

Run prepare(const std::filesystem::path& model, const QuantizeOptions& options,
            const std::filesystem::path& output, Observer& observer) {
  Recipe recipe = resolve(options, observer);
  const double budget = recipe.process.time_budget.seconds;
  Run run{std::move(recipe), OutputFolder(output), observer, RunClock(budget)};
  run.say("loading " + model.string());
  run.sha256 = formats::sha256_of_model(model);
  take_size_from_preprocessing(model, run.recipe.data, run.recipe.model, observer);
  run.teacher = load_float(model, run.recipe.model, run.recipe.process.device);
  run.pixels = resolve_preprocessing(run.teacher, run.recipe, observer);
  run.notes = require_statistics(run.teacher, run.recipe, observer);
  leave_out_fine_tuning_without_classes(run);
  fit_into_memory(run.teacher, run.recipe, observer);
  run.source = run.teacher;
  run.teacher = rewritten(std::move(run.teacher), run.recipe);
  run.added_macs = sum_of_macs(run.teacher) / sum_of_macs(run.source) - 1;
  run.loading = run.clock.seconds();
  if (!run.recipe.data.eval_data.empty()) open_real_images(run);
  if (!run.recipe.generate.bank.empty()) open_bank(run);
  run.noise = system_noise(run);
  require_same_run(run);
  return run;
}

}  // namespace zsq::pipeline
