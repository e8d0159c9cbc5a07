// SPDX-License-Identifier: Apache-2.0
#include "analysis/hessian_trace.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "analysis/plots.h"
#include "pipeline/analyses/analyses.h"

namespace zsq::pipeline {
namespace {

using analysis::Objective;

constexpr std::int64_t kProbes = 16;

double mean_square_root(const analysis::Tensors& weights) {
  double sum = 0, count = 0;
  for (const at::Tensor& weight : weights) {
    sum += weight.square().sum().item<double>();
    count += static_cast<double>(weight.numel());
  }
  return std::sqrt(sum / count);
}

// A hundredth of what weights are: small beside their curvature, large beside float's resolution.
analysis::TraceEstimate trace_of(const AnalysisInput& input, const analysis::Training& training,
                                 Objective objective, bool quantized) {
  const analysis::StudentFunction student(training.student(), quantized);
  const analysis::Sample sample = training.held_out(input.options.images);
  const analysis::Tensors weights = student.weights();
  const double h = (quantized ? 0.1 : 0.01) * mean_square_root(weights);
  return analysis::hessian_trace(
      [&](const analysis::Tensors& at) {
        return student.gradient(objective, sample, training.options().temperature, at);
      },
      weights, h, kProbes, input.seed());
}

std::string figure_name(const char* what, const std::string& loss, const std::string& quantizers) {
  return what + (", " + loss) + ", quantizers " + quantizers;
}

}  // namespace

AnalysisOutput analyse_hessian_trace(const AnalysisInput& input) {
  AnalysisOutput output;
  output.table.columns = {{"loss"}, {"quantizers"}, {"layer"}, {"trace"}};
  analysis::Chart off{"Without quantizers", {"layer, in the network's order"}, {}};
  analysis::Chart on{"As the student runs", {"layer, in the network's order"}, {}};
  for (const Objective objective : kObjectives) {
    auto training = input.training(
        [&](TrainOptions& finetune) { finetune.loss_terms = loss_terms_of(objective); });
    training.run(input.observer);
    const auto layers = analysis::StudentFunction(training.student(), true).layers();
    for (const bool quantized : {false, true}) {
      const auto trace = trace_of(input, training, objective, quantized);
      const std::string kind = quantized ? "on" : "off";
      const std::string name = analysis::name_of(objective);
      output.table.rows.push_back({name, kind, "all", analysis::full_number(trace.trace)});
      analysis::Curve curve{name, {}};
      for (std::size_t i = 0; i < layers.size(); ++i) {
        output.table.rows.push_back(
            {name, kind, layers[i], analysis::full_number(trace.layers[i])});
        curve.points.emplace_back(static_cast<double>(i + 1), std::abs(trace.layers[i]));
      }
      (quantized ? on : off).curves.push_back(std::move(curve));
      output.figures.emplace_back(figure_name("trace", name, kind), trace.trace);
      output.figures.emplace_back(figure_name("standard error", name, kind), trace.standard_error);
    }
  }
  output.svg = analysis::line_charts({off, on}, {"|trace of the layer's part|", true}).str();
  return output;
}

}  // namespace zsq::pipeline
