// SPDX-License-Identifier: Apache-2.0
#include "exporters/plan.h"

#include <algorithm>

#include "core/error.h"
#include "models/batch_norm_chain.h"
#include "quant/target_rules.h"

namespace zsq::exporters {
namespace {

using models::NodeId;

bool all_are_quantizers(const quant::Student& student, const std::vector<NodeId>& nodes) {
  return !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    return calibrated_quantizer(student, id);
  });
}

// Whether the file must hold zero points of the weights: the codes q - z leave int8.
bool keeps_zero_points(const quant::QuantizerSpec& spec) {
  return !spec.symmetric && spec.qmax - spec.qmin > 127;
}

// Empty if the target runs the layer in integers, else the rule that it breaks.
std::string why_float(const quant::Student& student, const quant::TargetRules& rules,
                      const Plan& plan, NodeId layer) {
  const auto& graph = student.graph;
  const quant::OperatorRule& rule = rules.of(graph[layer]);
  if (rule.execution == quant::Execution::floating) return "no integers in this operator";
  if (!plan.site[layer]) return "its weight is not quantized";
  if (!calibrated_quantizer(student, graph[layer].inputs[0])) return "its input is not quantized";
  if (keeps_zero_points(plan.site[layer]->op->spec()) &&
      rules.weights.with_zero_points == quant::Execution::floating)
    return "its weights have zero points";
  const quant::QuantizerSpec& weight = plan.site[layer]->op->spec();
  if (has_four_bits(weight) && weight.num_bits <= rules.weights.four_bit_type)
    return "its weights have a 4-bit type, which runtimes widen to float";
  if (rules.weights.float_biases && models::is<models::Linear>(graph[layer]) &&
      graph[layer].params.contains("bias"))
    return "its bias is a float";
  if (!rule.quantized_output) return "";
  const NodeId last = plan.last_absorbed(graph, layer);
  if (last == graph.output) return "its output is the network's output";
  const std::vector<NodeId>& users = plan.consumers[last];
  if (users.size() != 1) return "its output has " + std::to_string(users.size()) + " users";
  if (calibrated_quantizer(student, users[0])) return "";
  return "its output goes to " + models::op_name(graph[users[0]].op) + " without a quantizer";
}

ExecutesAs verdict(const quant::Student& student, const quant::TargetRules& rules, const Plan& plan,
                   NodeId layer) {
  const models::Node& node = student.graph[layer];
  const std::string reason = why_float(student, rules, plan, layer);
  const auto says = [&](const char* executes_as, const char* speed, const std::string& why) {
    return ExecutesAs{node.name, models::op_name(node.op), executes_as, speed, why};
  };
  if (!reason.empty()) return says("float", "as float", reason);
  if (keeps_zero_points(plan.site[layer]->op->spec()))
    return says("int8, slow", "slower than float",
                "its weights have zero points: " + std::string(rules.weights.cost_of_zero_points));
  return says("int8", "fast",
              rules.of(node).quantized_output ? "input, weight and output are codes"
                                              : "input and weight are codes");
}

}  // namespace

bool has_four_bits(const quant::QuantizerSpec& spec) {
  return spec.num_bits <= 4 && spec.format == quant::NumberFormat::uniform;
}

const quant::ActivationQuantizer* calibrated_quantizer(const quant::Student& student, NodeId id) {
  const auto* op = quant::activation_quantizer(student.graph[id]);
  return op && student.parameters.contains(op->scale_name()) ? op : nullptr;
}

ActivationGrid activation_grid(const quant::Student& student,
                               const quant::ActivationQuantizer& quantizer) {
  const auto number = [&](const std::string& name) {
    return student.parameters.at(name).item<float>();
  };
  return {number(quantizer.scale_name()),
          static_cast<std::int64_t>(number(quantizer.zero_point_name()))};
}

bool is_weight(const models::Node& node) {
  const auto* custom = models::get_if<models::Custom>(node);
  return models::is<models::Parameter>(node) ||
         (custom && dynamic_cast<const quant::WeightQuantizer*>(custom->op.get()));
}

FloatLayer float_layer(const quant::Student& student, const models::Node& layer) {
  const std::string& weight = layer.inputs.size() > 1
                                  ? student.graph[layer.inputs[1]].params.at("value")
                                  : layer.params.at("weight");
  const auto bias = layer.params.find("bias");
  return {student.parameters.at(weight),
          bias == layer.params.end() ? at::Tensor() : student.parameters.at(bias->second)};
}

NodeId Plan::last_absorbed(const models::Graph& graph, NodeId id) const {
  while (id != graph.output && consumers[id].size() == 1 && absorbed[consumers[id][0]])
    id = consumers[id][0];
  return id;
}

Plan make_plan(const quant::Student& student, const std::vector<quant::WeightSite>& sites) {
  const models::Graph& graph = student.graph;
  const quant::TargetRules& rules = quant::target_rules(student.options.target);
  const std::size_t n = graph.nodes.size();
  Plan plan{graph.consumers(),
            std::vector<bool>(n),
            std::vector<bool>(n),
            std::vector<const quant::WeightSite*>(n),
            {}};
  for (const quant::WeightSite& site : sites) {
    plan.site[site.layer] = &site;
    const NodeId behind = models::following_batch_norm(graph, plan.consumers, site.layer);
    if (behind >= 0) plan.absorbed[behind] = true;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<NodeId>(i);
    if (quant::activation_quantizer(graph[id]))
      plan.absorbed[i] = !calibrated_quantizer(student, id);
    else if (models::is<models::Clip>(graph[id]))
      plan.absorbed[i] = id != graph.output && all_are_quantizers(student, plan.consumers[i]);
    else if (const auto* op = models::get_if<models::HardSigmoid>(graph[id]))
      plan.saturates[i] = rules.of(graph[id]).execution == quant::Execution::integer &&
                          id != graph.output && op->alpha > 0 && op->beta > 0 &&
                          calibrated_quantizer(student, graph[id].inputs[0]) &&
                          all_are_quantizers(student, plan.consumers[i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<NodeId>(i);
    if (!models::is<models::Conv2d>(graph[id]) && !models::is<models::Linear>(graph[id])) continue;
    plan.layers.push_back(verdict(student, rules, plan, id));
  }
  return plan;
}

}  // namespace zsq::exporters
