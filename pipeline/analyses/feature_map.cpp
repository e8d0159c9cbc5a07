// SPDX-License-Identifier: Apache-2.0
#include "analysis/feature_map.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "analysis/plots.h"
#include "pipeline/analyses/analyses.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kClassesShown = 10;

// Images of one kind with the class of each; -1 between two.
struct Kind {
  std::string name;
  analysis::Sample sample;
  std::vector<std::int64_t> classes;
};

std::vector<std::int64_t> largest(const at::Tensor& targets) {
  const auto order = targets.argmax(1).cpu();
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < order.size(0); ++i) classes.push_back(order[i].item<std::int64_t>());
  return classes;
}

Kind real_kind(const analysis::Sample& sample) { return {"real", sample, largest(sample.targets)}; }

Kind generated(const AnalysisInput& input, const analysis::Training& training, double superposed) {
  Kind kind{superposed > 0 ? "with boundary samples" : "single classes",
            training.held_out(input.options.images),
            {}};
  kind.classes = largest(kind.sample.targets);
  const auto share = kind.sample.targets.amax(1).cpu();
  for (std::size_t i = 0; i < kind.classes.size(); ++i)
    if (share[static_cast<std::int64_t>(i)].item<double>() < 1) kind.classes[i] = -1;
  return kind;
}

// Half of a batch in the middle of the two: the two generators are trained alike.
Kind trained(const AnalysisInput& input, double superposed) {
  const auto& recipe = input.options.recipe;
  GeneratorOptions generator = recipe.generate;
  generator.superposed_share = superposed;
  TrainOptions finetune = recipe.finetune;
  finetune.warmup = 1;  // no student
  analysis::Training training({input.teacher, recipe.quantize, generator, finetune, input.seed()});
  training.run(input.observer);
  return generated(input, training, superposed);
}

analysis::CloudChart chart_of(const Kind& kind, const at::Tensor& places) {
  analysis::CloudChart chart{kind.name, {}};
  const auto of_class = [&](std::int64_t wanted, const std::string& name, bool ring) {
    analysis::Cloud cloud{name, {}, ring};
    for (std::size_t i = 0; i < kind.classes.size(); ++i)
      if (kind.classes[i] == wanted) {
        const auto place = places[static_cast<std::int64_t>(i)];
        cloud.points.emplace_back(place[0].item<double>(), place[1].item<double>());
      }
    chart.clouds.push_back(std::move(cloud));
  };
  for (std::int64_t c = 0; c < std::min(kClassesShown, kind.sample.logits.size(1)); ++c)
    of_class(c, "class " + std::to_string(c), false);
  of_class(-1, "between two classes", true);
  if (chart.clouds.back().points.empty()) chart.clouds.pop_back();
  return chart;
}

}  // namespace

AnalysisOutput analyse_feature_map(const AnalysisInput& input) {
  const double share = input.options.recipe.generate.superposed_share;
  std::vector<Kind> kinds;
  if (const auto real = input.real_sample(input.options.images)) kinds.push_back(real_kind(*real));
  kinds.push_back(trained(input, 0));
  kinds.push_back(trained(input, share > 0 ? share : 0.4));
  const auto features = [&](const Kind& kind) {
    return analysis::features_of(input.teacher, kind.sample.images).cpu();
  };
  const auto projection = analysis::fit_projection(features(kinds.front()));
  AnalysisOutput output;
  output.table.columns = {{"images"}, {"class"}, {"first"}, {"second"}};
  std::vector<analysis::CloudChart> charts;
  for (const Kind& kind : kinds) {
    const auto places = analysis::project(projection, features(kind));
    for (std::size_t i = 0; i < kind.classes.size(); ++i) {
      const auto place = places[static_cast<std::int64_t>(i)];
      output.table.rows.push_back(
          {kind.name, kind.classes[i] < 0 ? "between" : std::to_string(kind.classes[i]),
           analysis::full_number(place[0].item<double>()),
           analysis::full_number(place[1].item<double>())});
    }
    const auto coverage = analysis::pair_coverage(kind.sample.logits.cpu());
    output.figures.emplace_back(
        kind.name + ": pairs of classes covered, of " + std::to_string(coverage.pairs),
        static_cast<double>(coverage.covered));
    output.figures.emplace_back(kind.name + ": images between two classes, %",
                                100 * coverage.between);
    charts.push_back(chart_of(kind, places));
  }
  output.figures.emplace_back("variance along both axes, %", 100 * projection.explained);
  output.svg = analysis::scatter_charts(charts, {"first axis"}, {"second axis"}).str();
  return output;
}

}  // namespace zsq::pipeline
