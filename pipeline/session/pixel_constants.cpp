// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/pixel_constants.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <cmath>

#include "models/execute.h"

namespace zsq::pipeline {
namespace {

// The last node of the constants that are applied to the pixels; the input, if there is none.
models::NodeId end_of_constants(const models::Graph& graph) {
  const auto consumers = graph.consumers();
  const auto constant = [&](models::NodeId id) { return models::is<models::Parameter>(graph[id]); };
  models::NodeId end = graph.input;
  while (consumers[static_cast<std::size_t>(end)].size() == 1) {
    const models::NodeId next = consumers[static_cast<std::size_t>(end)][0];
    const models::Node& node = graph[next];
    const bool affine = models::is<models::Add>(node) || models::is<models::Mul>(node) ||
                        models::is<models::Binary>(node);
    if (!affine || node.inputs.size() != 2) break;
    const models::NodeId other = node.inputs[0] == end ? node.inputs[1] : node.inputs[0];
    if (!constant(other)) break;
    end = next;
  }
  return end;
}

}  // namespace

std::optional<std::pair<double, double>> constants_before(const models::Model& model) {
  const models::NodeId end = end_of_constants(model.graph);
  if (end == model.graph.input) return std::nullopt;
  const at::NoGradGuard no_grad;
  models::Graph front = model.graph;
  front.nodes.resize(static_cast<std::size_t>(end) + 1);
  front.output = end;
  const auto [channels, height, width] = front.input_shape;
  const auto at_value = [&](double value) {
    const auto image = at::full({1, channels, height, width}, value, at::kFloat);
    return models::execute(front, model.parameters, image.to(model.parameters.device()))
        .mean()
        .item<double>();
  };
  const double shift = at_value(0), scale = at_value(1) - shift;
  const bool affine = std::abs(at_value(2) - shift - 2 * scale) < 1e-3 * (1e-6 + std::abs(scale));
  if (!affine || !std::isfinite(scale)) return std::nullopt;
  return std::pair(scale, shift);
}

}  // namespace zsq::pipeline
