// SPDX-License-Identifier: Apache-2.0
#include "analysis/loss_surface.h"

#include <algorithm>

#include "analysis/plots.h"
#include "core/seed.h"
#include "pipeline/analyses/analyses.h"

namespace zsq::pipeline {
namespace {

using analysis::Objective;

constexpr double kRadius = 0.5;  // of each filter's norm

// How far the loss rises above that of the weights, in multiples of it.
std::vector<std::vector<double>> rise(const analysis::LossSurface& surface) {
  const std::size_t centre = surface.steps.size() / 2;
  const double at_weights = surface.losses[centre][centre];
  auto values = surface.losses;
  for (auto& row : values)
    for (double& value : row) value = value / at_weights;
  return values;
}

double mean_at_edge(const std::vector<std::vector<double>>& values) {
  double sum = 0, count = 0;
  for (std::size_t r = 0; r < values.size(); ++r)
    for (std::size_t c = 0; c < values.size(); ++c)
      if (r == 0 || c == 0 || r + 1 == values.size() || c + 1 == values.size())
        sum += values[r][c], ++count;
  return sum / count;
}

}  // namespace

AnalysisOutput analyse_loss_surface(const AnalysisInput& input) {
  AnalysisOutput output;
  output.table.columns = {{"loss"}, {"first"}, {"second"}, {"value"}};
  const int points = static_cast<int>(std::max<std::int64_t>(input.options.looks, 3) | 1);
  std::vector<analysis::HeatMap> maps;
  std::vector<std::string> marks;
  for (const Objective objective : kObjectives) {
    auto training = input.training(
        [&](TrainOptions& finetune) { finetune.loss_terms = loss_terms_of(objective); });
    training.run(input.observer);
    const analysis::StudentFunction student(training.student(), /*quantized=*/true);
    const analysis::Sample sample = training.held_out(input.options.images);
    const analysis::Tensors weights = student.weights();
    const auto direction = [&](std::uint64_t i) {
      return analysis::filter_normalised_direction(weights,
                                                   stream_seed(input.seed(), "loss_surface", i));
    };
    const auto surface = analysis::loss_surface(
        [&](const analysis::Tensors& at) {
          return student.loss(objective, sample, training.options().temperature, at);
        },
        weights, direction(0), direction(1), kRadius, points);
    marks.clear();
    for (std::size_t r = 0; r < surface.steps.size(); ++r) {
      marks.push_back(analysis::short_number(surface.steps[r]));
      for (std::size_t c = 0; c < surface.steps.size(); ++c)
        output.table.rows.push_back(
            {analysis::name_of(objective), analysis::full_number(surface.steps[c]),
             analysis::full_number(surface.steps[r]), analysis::full_number(surface.losses[r][c])});
    }
    const std::size_t centre = surface.steps.size() / 2;
    const auto relative = rise(surface);
    output.figures.emplace_back(std::string("loss at the weights, ") + analysis::name_of(objective),
                                surface.losses[centre][centre]);
    output.figures.emplace_back(
        std::string("mean at the edge, in multiples of it, ") + analysis::name_of(objective),
        mean_at_edge(relative));
    maps.push_back({analysis::name_of(objective), relative});
  }
  output.svg = analysis::heat_maps(maps, marks, marks, "first direction, in norms of the filters",
                                   {"loss / loss at the weights", true})
                   .str();
  return output;
}

}  // namespace zsq::pipeline
