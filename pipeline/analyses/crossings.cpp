// SPDX-License-Identifier: Apache-2.0
#include "analysis/crossings.h"

#include <algorithm>

#include "analysis/plots.h"
#include "pipeline/analyses/analyses.h"

namespace zsq::pipeline {
namespace {

struct Training {
  const char* name;
  Inundation inundation;
};
constexpr Training kTrainings[] = {{"KL alone, plain steps", Inundation::off},
                                   {"KL with gradient inundation", Inundation::exact}};

analysis::Crossings count(const AnalysisInput& input, Inundation inundation) {
  auto training = input.training([&](TrainOptions& finetune) {
    finetune.loss_terms = loss_terms_of(analysis::Objective::kl_divergence);
    finetune.inundation = inundation;
  });
  analysis::CrossingCounter counter(training.student());
  training.run(
      input.observer, [&](auto...) { counter.before_step(); },
      [&](std::int64_t step, std::int64_t steps, const auto&) {
        counter.after_step();
        const std::int64_t looks = input.options.looks;
        if ((step + 1) * looks / steps != step * looks / steps) counter.end_epoch();
      });
  counter.end_epoch();
  return counter.crossings();
}

// Rows are layers, columns epochs.
std::vector<std::vector<double>> by_layer(const analysis::Crossings& crossings) {
  std::vector<std::vector<double>> rows(crossings.layers.size());
  for (const auto& epoch : crossings.shares)
    for (std::size_t layer = 0; layer < epoch.size(); ++layer) rows[layer].push_back(epoch[layer]);
  return rows;
}

}  // namespace

AnalysisOutput analyse_crossings(const AnalysisInput& input) {
  AnalysisOutput output;
  output.table.columns = {{"training"}, {"epoch"}, {"layer"}, {"weights"}, {"share_per_step"}};
  std::vector<analysis::HeatMap> maps;
  std::vector<std::string> layers, epochs;
  for (const Training& trained : kTrainings) {
    const analysis::Crossings crossings = count(input, trained.inundation);
    for (std::size_t epoch = 0; epoch < crossings.shares.size(); ++epoch)
      for (std::size_t layer = 0; layer < crossings.layers.size(); ++layer)
        output.table.rows.push_back(
            {trained.name, std::to_string(epoch + 1), crossings.layers[layer],
             std::to_string(static_cast<std::int64_t>(crossings.sizes[layer])),
             analysis::full_number(crossings.shares[epoch][layer])});
    maps.push_back({trained.name, by_layer(crossings)});
    layers = crossings.layers;
    epochs.clear();
    for (std::size_t epoch = 0; epoch < crossings.shares.size(); ++epoch)
      epochs.push_back(std::to_string(epoch + 1));
    output.figures.emplace_back(std::string("crossings per step, %: ") + trained.name,
                                100 * crossings.mean_share());
  }
  output.svg = analysis::heat_maps(maps, layers, epochs, "part of the training",
                                   {"share of codes that a step changes", true})
                   .str();
  return output;
}

}  // namespace zsq::pipeline
