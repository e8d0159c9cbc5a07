// SPDX-License-Identifier: Apache-2.0
#include "exporters/plan.h"

#include <algorithm>

#include "quant/fold_batch_norm.h"

namespace zsq::exporters {
namespace {

using models::NodeId;

bool all_are_quantizers(const quant::Student& student, const std::vector<NodeId>& nodes) {
  return !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    return calibrated_quantizer(student, id);
  });
}

// Empty where onnxruntime runs the layer in integers, else the rule that it breaks.
std::string why_float(const quant::Student& student, const Plan& plan, NodeId layer) {
  const auto& graph = student.graph;
  if (!plan.site[layer]) return "its weight is not quantized";
  if (!calibrated_quantizer(student, graph[layer].inputs[0])) return "its input is not quantized";
  if (models::is<models::Linear>(graph[layer])) return "";
  NodeId last = layer;
  while (last != graph.output && plan.consumers[last].size() == 1 &&
         plan.absorbed[plan.consumers[last][0]])
    last = plan.consumers[last][0];
  if (last == graph.output) return "its output is the network's output";
  const std::vector<NodeId>& users = plan.consumers[last];
  if (users.size() != 1) return "its output has " + std::to_string(users.size()) + " users";
  if (calibrated_quantizer(student, users[0])) return "";
  return "its output goes to " + models::op_name(graph[users[0]].op) + " without a quantizer";
}

}  // namespace

const quant::ActivationQuantizer* calibrated_quantizer(const quant::Student& student, NodeId id) {
  const auto* op = quant::activation_quantizer(student.graph[id]);
  return op && student.parameters.contains(op->scale_name()) ? op : nullptr;
}

Plan make_plan(const quant::Student& student, const std::vector<quant::WeightSite>& sites) {
  const models::Graph& graph = student.graph;
  const std::size_t n = graph.nodes.size();
  Plan plan{graph.consumers(), std::vector<bool>(n), std::vector<const quant::WeightSite*>(n), {}};
  for (const quant::WeightSite& site : sites) {
    plan.site[site.layer] = &site;
    const NodeId behind = quant::batch_norm_behind(graph, plan.consumers, site.layer);
    if (behind >= 0) plan.absorbed[behind] = true;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<NodeId>(i);
    if (quant::activation_quantizer(graph[id]))
      plan.absorbed[i] = !calibrated_quantizer(student, id);
    else if (models::is<models::Clip>(graph[id]))
      plan.absorbed[i] = id != graph.output && all_are_quantizers(student, plan.consumers[i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<NodeId>(i);
    if (!models::is<models::Conv2d>(graph[id]) && !models::is<models::Linear>(graph[id])) continue;
    const std::string reason = why_float(student, plan, id);
    plan.layers.push_back({graph[id].name, models::op_name(graph[id].op),
                           reason.empty() ? "int8" : "float",
                           reason.empty() ? "input, weight and output are codes" : reason});
  }
  return plan;
}

}  // namespace zsq::exporters
