// SPDX-License-Identifier: Apache-2.0
#include "analysis/feature_map.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>

#include "core/error.h"
#include "models/execute.h"

namespace zsq::analysis {
namespace {

models::NodeId classifier_of(const models::Graph& graph) {
  models::NodeId id = graph.output;
  while (!models::is<models::Linear>(graph[id]) && !models::is<models::Conv2d>(graph[id])) {
    if (graph[id].inputs.empty())
      throw Error(ErrorCode::unsupported_model,
                  "a feature map needs a network that ends in a linear layer or a convolution");
    id = graph[id].inputs[0];
  }
  return id;
}

}  // namespace

at::Tensor features_of(const models::Model& model, const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const models::NodeId features = model.graph[classifier_of(model.graph)].inputs[0];
  models::Taps taps{{features}, {}};
  models::execute(model.graph, model.parameters, images, &taps);
  return taps.values[0].flatten(1).to(at::kFloat);
}

Projection fit_projection(const at::Tensor& features) {
  const auto x = features.to(at::kDouble);
  Projection projection;
  projection.mean = x.mean(0);
  projection.deviation = (x - projection.mean).square().mean(0).sqrt().clamp_min(1e-12);
  const auto standard = (x - projection.mean) / projection.deviation;
  const auto covariance = standard.t().mm(standard) / static_cast<double>(x.size(0));
  const auto [variances, axes] = at::linalg_eigh(covariance);  // ascending
  projection.axes = axes.t().slice(0, axes.size(1) - 2).flip(0).contiguous();
  projection.explained =
      (variances.slice(0, variances.size(0) - 2).sum() / variances.sum()).item<double>();
  return projection;
}

at::Tensor project(const Projection& projection, const at::Tensor& features) {
  return ((features.to(at::kDouble) - projection.mean) / projection.deviation)
      .mm(projection.axes.t());
}

PairCoverage pair_coverage(const at::Tensor& logits, double ratio) {
  const auto classes = static_cast<std::size_t>(logits.size(1));
  const auto [values, order] = at::softmax(logits.to(at::kDouble), 1).topk(2, 1);
  PairCoverage result;
  result.pairs = static_cast<std::int64_t>(classes * (classes - 1) / 2);
  result.images.assign(classes, std::vector<double>(classes, 0));
  for (std::int64_t n = 0; n < logits.size(0); ++n) {
    if (values[n][1].item<double>() < ratio * values[n][0].item<double>()) continue;
    const auto a = static_cast<std::size_t>(order[n][0].item<std::int64_t>());
    const auto b = static_cast<std::size_t>(order[n][1].item<std::int64_t>());
    result.covered += result.images[a][b] == 0;
    result.images[a][b] += 1;
    result.images[b][a] += 1;
    result.between += 1 / static_cast<double>(logits.size(0));
  }
  return result;
}

}  // namespace zsq::analysis
