// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/missing_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "core/seed.h"
#include "models/bn_statistics.h"
#include "models/execute.h"
#include "models/load.h"
#include "pipeline/images/image_job.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kImages = 128, kStep = 8;
constexpr double kEps = 1e-5;

// Running sums over images and places, f64 [channels].
struct Sums {
  at::Tensor values, squares;
  std::int64_t count = 0;

  void add(const at::Tensor& map) {
    const auto x = map.to(at::kDouble);
    const auto first = x.sum({0, 2, 3}), second = x.square().sum({0, 2, 3});
    values = values.defined() ? values + first : first;
    squares = squares.defined() ? squares + second : second;
    count += map.numel() / map.size(1);
  }
  models::ChannelStatistics statistics() const {
    const auto n = static_cast<double>(count);
    const auto mean = values / n;
    return {mean.to(at::kFloat), (squares / n - mean.square()).clamp_min(0).to(at::kFloat), {}, {}};
  }
};

models::StatisticsByLayer statistics_on_images(const models::Model& model, const Recipe& recipe) {
  const at::NoGradGuard no_grad;
  const auto names = models::convolutions_without_batch_norm(model.graph);
  models::Taps taps;
  for (const auto& name : names) taps.nodes.push_back(model.graph.id_of(name));
  std::vector<Sums> sums(names.size());
  const auto seed =
      stream_seed(static_cast<std::uint64_t>(recipe.process.seed), "missing_batch_norm", 0);
  for (std::int64_t first = 0; first < kImages; first += kStep) {
    models::execute(model.graph, model.parameters,
                    procedural_images(model, recipe, first, kStep, seed), &taps);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(taps.values[i]);
  }
  models::StatisticsByLayer statistics;
  for (std::size_t i = 0; i < sums.size(); ++i) statistics[names[i]] = sums[i].statistics();
  return statistics;
}

// What is kept of BatchNorm, beside the convolutions that have none.
struct Kept {
  std::int64_t layers = 0, folded = 0, without = 0;
  // Inferred statistics grow wrong from layer to layer where hardly any is known.
  bool is_too_little() const { return folded + without > layers; }
};

Kept kept_in(const models::Model& model, std::int64_t layers) {
  const auto census = models::count_batch_norm(model);
  return {layers, std::ssize(census.look_folded), std::ssize(census.without)};
}

std::string note_of(const Kept& kept) {
  const std::string there = std::to_string(kept.layers) + " BatchNorm layers are there, and ";
  constexpr const char* kDoctor = " (`zsq inspect --doctor` says which, and how to keep them)";
  if (kept.is_too_little())
    return there + std::to_string(kept.folded + kept.without) +
           " convolutions have none: statistics of synthetic images take the place of theirs" +
           kDoctor;
  return there + std::to_string(kept.folded) +
         " more were folded into their convolutions on export: their statistics are inferred from "
         "those of the others" +
         kDoctor;
}

void add_statistics(models::Model& model, Recipe& recipe) {
  models::add_batch_norm(statistics_on_images(model, recipe), kEps, model);
  model.statistics_of_images = true;
  recipe.images.source = procedural_source(model);
}

}  // namespace

std::vector<std::string> require_statistics(models::Model& model, Recipe& recipe,
                                            Observer& observer) {
  std::vector<std::string> notes = model.warnings;
  const auto found = models::inspect_batch_norm(model);
  const bool usable = found.kind == models::BatchNormVerdict::Kind::usable;
  const Kept kept = kept_in(model, found.layers);
  const bool trains = recipe.finetune.iterations > 0;
  if (usable && (kept.folded > 0 || kept.is_too_little())) notes.push_back(note_of(kept));
  if (!usable) {
    if (recipe.model.require_bn)
      throw Error(ErrorCode::unsupported_model,
                  "--require_bn (model.require_bn) refuses the network, for which statistics of "
                  "synthetic images would serve. " +
                      found.refusal);
    notes.push_back(found.explanation + (trains ? " Fine-tuning is left out." : ""));
    recipe.finetune.iterations = 0;
  }
  if (!usable || kept.is_too_little()) add_statistics(model, recipe);
  for (const auto& note : notes) observer.on_message(LogLevel::warning, note);
  return notes;
}

}  // namespace zsq::pipeline
