// SPDX-License-Identifier: Apache-2.0
#include "pipeline/missing_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

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

models::StatisticsByLayer statistics_on_dead_leaves(const models::Model& model,
                                                    const Recipe& recipe) {
  const at::NoGradGuard no_grad;
  const auto names = models::convolutions_without_batch_norm(model.graph);
  models::Taps taps;
  for (const auto& name : names) taps.nodes.push_back(model.graph.id_of(name));
  std::vector<Sums> sums(names.size());
  const auto seed =
      stream_seed(static_cast<std::uint64_t>(recipe.process.seed), "missing_batch_norm", 0);
  for (std::int64_t first = 0; first < kImages; first += kStep) {
    models::execute(model.graph, model.parameters, dead_leaves(model, recipe, first, kStep, seed),
                    &taps);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(taps.values[i]);
  }
  models::StatisticsByLayer statistics;
  for (std::size_t i = 0; i < sums.size(); ++i) statistics[names[i]] = sums[i].statistics();
  return statistics;
}

}  // namespace

namespace {

// Empty if none was folded.
std::string note_of_folded(const models::Model& model, std::int64_t kept) {
  const auto folded = std::ssize(models::count_batch_norm(model).look_folded);
  if (folded == 0) return "";
  return std::to_string(kept) + " BatchNorm layers are there, and " + std::to_string(folded) +
         " more were folded into their convolutions on export: their statistics are inferred from "
         "those of the others (`zsq inspect --doctor` says which, and how to keep them)";
}

}  // namespace

std::vector<std::string> require_statistics(models::Model& model, Recipe& recipe,
                                            Observer& observer) {
  std::vector<std::string> notes = model.warnings;
  const auto found = models::inspect_batch_norm(model);
  const bool usable = found.kind == models::BatchNormVerdict::Kind::usable;
  if (const auto folded = usable ? note_of_folded(model, found.layers) : std::string();
      !folded.empty())
    notes.push_back(folded);
  for (const auto& note : notes) observer.on_message(LogLevel::warning, note);
  if (usable) return notes;
  if (recipe.model.require_bn) models::require_batch_norm(model);
  models::add_batch_norm(statistics_on_dead_leaves(model, recipe), kEps, model);
  recipe.images.source = ImageSource::dead_leaves;
  const bool trains = recipe.finetune.iterations > 0;
  recipe.finetune.iterations = 0;
  notes.push_back(found.explanation + (trains ? " Fine-tuning is left out." : ""));
  observer.on_message(LogLevel::warning, notes.back());
  return notes;
}

}  // namespace zsq::pipeline
