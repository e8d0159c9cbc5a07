// SPDX-License-Identifier: Apache-2.0
#include "analysis/gradient_cosine.h"

#include <algorithm>

#include "analysis/plots.h"
#include "pipeline/analyses/analyses.h"

namespace zsq::pipeline {
namespace {

using analysis::GradientCosine;

struct Looks {
  const char* kind;
  std::vector<std::pair<std::int64_t, GradientCosine>> seen;  // by step

  double mean() const {
    double sum = 0;
    for (const auto& [step, cosine] : seen) sum += cosine.all;
    return seen.empty() ? 0 : sum / static_cast<double>(seen.size());
  }
  double share_obtuse() const {
    const auto count = std::count_if(seen.begin(), seen.end(),
                                     [](const auto& look) { return look.second.all < 0; });
    return seen.empty() ? 0 : static_cast<double>(count) / static_cast<double>(seen.size());
  }
  analysis::Curve over_steps() const {
    analysis::Curve curve{kind, {}};
    for (const auto& [step, cosine] : seen)
      curve.points.emplace_back(static_cast<double>(step), cosine.all);
    return curve;
  }
  analysis::Curve over_layers() const {
    analysis::Curve curve{kind, {}};
    for (std::size_t layer = 0; layer < seen.front().second.layers.size(); ++layer) {
      double sum = 0;
      for (const auto& [step, cosine] : seen) sum += cosine.layers[layer];
      curve.points.emplace_back(static_cast<double>(layer + 1),
                                sum / static_cast<double>(seen.size()));
    }
    return curve;
  }
};

Grid table_of(const std::vector<Looks>& all, const std::vector<std::string>& layers) {
  Grid table{{{"images"}, {"step"}, {"layer"}, {"cosine"}}, {}};
  for (const Looks& looks : all)
    for (const auto& [step, cosine] : looks.seen) {
      const std::string number = std::to_string(step);
      table.rows.push_back({looks.kind, number, "all", std::to_string(cosine.all)});
      for (std::size_t i = 0; i < layers.size(); ++i)
        table.rows.push_back({looks.kind, number, layers[i], std::to_string(cosine.layers[i])});
    }
  return table;
}

}  // namespace

AnalysisOutput analyse_gradient_cosine(const AnalysisInput& input) {
  auto training = input.training();
  const double tau = training.options().temperature;
  const auto real = input.real_sample(input.options.images);
  Looks synthetic{"synthetic", {}}, photographs{"real", {}};
  std::vector<std::string> layers;
  training.run(input.observer, [&](std::int64_t step, std::int64_t steps, const auto& sample) {
    if (step % std::max<std::int64_t>(1, steps / input.options.looks) != 0) return;
    const analysis::StudentFunction student(training.student(), /*quantized=*/true);
    layers = student.layers();
    synthetic.seen.emplace_back(step, analysis::gradient_cosine(student, sample, tau));
    if (real) photographs.seen.emplace_back(step, analysis::gradient_cosine(student, *real, tau));
  });
  std::vector<Looks> all{synthetic};
  if (real) all.push_back(photographs);
  AnalysisOutput output;
  std::vector<analysis::Curve> over_steps, over_layers;
  for (const Looks& looks : all) {
    if (looks.seen.empty()) continue;
    over_steps.push_back(looks.over_steps());
    over_layers.push_back(looks.over_layers());
    output.figures.emplace_back(std::string("mean cosine, ") + looks.kind, looks.mean());
    output.figures.emplace_back(std::string("share of obtuse angles, ") + looks.kind,
                                looks.share_obtuse());
  }
  output.table = table_of(all, layers);
  const analysis::Axis cosine{"cosine of the two gradients", false, -1, 1};
  output.svg =
      analysis::line_charts(
          {{"All layers together", {"step of the student"}, over_steps},
           {"Layer by layer, mean over the steps", {"layer, in the network's order"}, over_layers}},
          cosine)
          .str();
  return output;
}

}  // namespace zsq::pipeline
