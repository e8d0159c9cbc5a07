// SPDX-License-Identifier: Apache-2.0
#include "analysis/threshold_distance.h"

#include <algorithm>
#include <cmath>

#include "analysis/plots.h"
#include "pipeline/analyses/analyses.h"

namespace zsq::pipeline {
namespace {

// What plain Nesterov steps subtract once the momentum has built up: gradients that stay the same
// for 1 / (1 - momentum) steps move a weight by lr / (1 - momentum) each.
analysis::Tensors steps_of(const analysis::StudentFunction& student, const analysis::Sample& sample,
                           const TrainOptions& options) {
  analysis::Tensors steps = student.gradient(analysis::Objective::kl_divergence, sample,
                                             options.temperature, student.weights());
  for (at::Tensor& step : steps) step.mul_(options.lr / (1 - options.momentum));
  return steps;
}

analysis::Curve histogram(const std::string& name, const analysis::ThresholdDistances& distances,
                          std::size_t layer) {
  analysis::Curve curve{name, {}};
  for (std::size_t bin = 0; bin < distances.shares[layer].size(); ++bin) {
    const double share = 100 * distances.shares[layer][bin];
    curve.points.emplace_back(std::pow(10, distances.edges[bin]), share);
    curve.points.emplace_back(std::pow(10, distances.edges[bin + 1]), share);
  }
  return curve;
}

// The first, the last, and those whose median is least and greatest.
std::vector<std::size_t> shown_layers(const analysis::ThresholdDistances& distances) {
  const auto& median = distances.median;
  const auto place = [&](auto found) { return static_cast<std::size_t>(found - median.begin()); };
  std::vector<std::size_t> layers{0, place(std::min_element(median.begin(), median.end())),
                                  place(std::max_element(median.begin(), median.end())),
                                  median.size() - 1};
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

void add_rows(Grid& table, const char* moment, const analysis::ThresholdDistances& distances) {
  for (std::size_t layer = 0; layer < distances.layers.size(); ++layer)
    for (std::size_t bin = 0; bin < distances.shares[layer].size(); ++bin)
      table.rows.push_back({moment, distances.layers[layer],
                            analysis::full_number(std::pow(10, distances.edges[bin])),
                            analysis::full_number(std::pow(10, distances.edges[bin + 1])),
                            analysis::full_number(distances.shares[layer][bin])});
}

}  // namespace

AnalysisOutput analyse_threshold_distance(const AnalysisInput& input) {
  auto training = input.training([](TrainOptions& finetune) {
    finetune.loss_terms = loss_terms_of(analysis::Objective::kl_divergence);
    finetune.inundation = Inundation::off;
  });
  AnalysisOutput output;
  output.table.columns = {{"moment"}, {"layer"}, {"from"}, {"to"}, {"share"}};
  std::vector<analysis::Chart> charts;
  const auto look = [&](const char* moment, const analysis::Sample& sample) {
    const analysis::StudentFunction student(training.student(), /*quantized=*/true);
    const auto distances = analysis::threshold_distances(
        training.student(), steps_of(student, sample, training.options()));
    analysis::Chart chart{moment, {"steps until the code changes", true}, {}};
    for (const std::size_t layer : shown_layers(distances))
      chart.curves.push_back(histogram(distances.layers[layer], distances, layer));
    charts.push_back(std::move(chart));
    add_rows(output.table, moment, distances);
    const auto [least, most] =
        std::minmax_element(distances.median.begin(), distances.median.end());
    const double within =
        *std::max_element(distances.within_one.begin(), distances.within_one.end());
    output.figures.emplace_back(std::string(moment) + ": median steps, nearest layer", *least);
    output.figures.emplace_back(std::string(moment) + ": median steps, farthest layer", *most);
    output.figures.emplace_back(std::string(moment) + ": one step suffices, %, at most",
                                100 * within);
  };
  training.run(input.observer, [&](std::int64_t step, std::int64_t steps, const auto& sample) {
    if (step == 0) look("first step", sample);
    if (step == steps - 1 && step > 0) look("last step", sample);
  });
  output.svg = analysis::line_charts(charts, {"share of the layer's weights, %"}).str();
  return output;
}

}  // namespace zsq::pipeline
