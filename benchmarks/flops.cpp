// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/flops.h"

#include <algorithm>

#include "models/load.h"

namespace zsq::benchmarks {
namespace {

using models::Node;
using models::NodeId;

bool learns(const Node& node, const models::ParameterStore& parameters) {
  return std::any_of(node.params.begin(), node.params.end(), [&](const auto& role_and_name) {
    return parameters.at(role_and_name.second).requires_grad();
  });
}

}  // namespace

Flops count_flops(const models::Graph& graph, const models::ParameterStore& parameters,
                  bool image_wants_gradient) {
  models::Model model;
  model.graph = graph;
  model.parameters = parameters;
  const auto macs = models::multiply_accumulates(model);
  std::vector<bool> wants_gradient(graph.nodes.size(), false);
  Flops flops;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    const auto input_wants = [&](std::size_t i) {
      return i < node.inputs.size() && wants_gradient[static_cast<std::size_t>(node.inputs[i])];
    };
    bool wants = learns(node, parameters);
    if (static_cast<NodeId>(id) == graph.input) wants = image_wants_gradient;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) wants = wants || input_wants(i);
    wants_gradient[id] = wants;

    const auto weight = node.params.find("weight");
    const bool weight_learns = input_wants(1) || (weight != node.params.end() &&
                                                  parameters.at(weight->second).requires_grad());
    const double work = 2 * static_cast<double>(macs[id]);
    flops.forward += work;
    flops.backward += work * ((weight_learns ? 1 : 0) + (input_wants(0) ? 1 : 0));
  }
  return flops;
}

Flops count_flops(const generator::Generator& generator, Precision precision) {
  Flops flops;
  for (const auto& layer : generator.layer_work(precision)) {
    const double work = 2 * static_cast<double>(layer.macs);
    flops.forward += work;
    flops.backward += work * (layer.input_learns ? 2 : 1);
  }
  return flops;
}

}  // namespace zsq::benchmarks
