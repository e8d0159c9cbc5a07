// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/inferred_values.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mv.h>

#include <algorithm>

#include "quant/data_free/sources.h"
#include "quant/student.h"

namespace zsq::quant {
namespace {

using models::NodeId;

constexpr std::int64_t kMostValues = 4096;

constexpr double kSigmoidBegins = -6;  // x sigmoid(x) is nearly 0 below

// Where x h(x) begins that has factors (rewrites/scale_gates.h), [C, 1, 1], after quantizers, where
// nothing else reads x: -beta / (alpha scale), or -6 / scale of a sigmoid; undefined for other
// tensors.
at::Tensor begin_of_gate(const models::Graph& graph, const models::ParameterStore& parameters,
                         const std::vector<std::vector<NodeId>>& consumers, NodeId id) {
  const auto readers = readers_of(graph, consumers, id);
  if (readers.size() != 2) return {};
  for (const NodeId reader : readers) {
    const auto& node = graph[reader];
    const auto* gate = models::get_if<models::HardSigmoid>(node);
    if (gate && node.params.contains("scale"))
      return parameters.at(node.params.at("scale")).reciprocal().mul(-gate->beta / gate->alpha);
    if (!models::is<models::Mul>(node) || !is_constant(graph, node.inputs[1])) continue;
    const auto behind = readers_of(graph, consumers, reader);
    if (behind.size() != 1 || !models::is<models::Sigmoid>(graph[behind[0]])) continue;
    NodeId factor = node.inputs[1];
    while (!models::is<models::Parameter>(graph[factor])) factor = graph[factor].inputs[0];
    return parameters.at(graph[factor].params.at("value")).reciprocal().mul(kSigmoidBegins)[0];
  }
  return {};
}

}  // namespace

InferredValues::InferredValues(const models::Graph& graph, const models::ParameterStore& parameters,
                               const std::vector<NodeId>& nodes, Purpose purpose, PixelLaw pixels)
    : graph_(graph) {
  std::vector<NodeId> wanted;
  for (NodeId id : nodes)
    if (rows_.try_emplace(before_clip(id)).second) wanted.push_back(before_clip(id));
  const auto rows = activation_distributions(graph, parameters, wanted, purpose, pixels);
  const auto consumers = graph.consumers();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    auto& kept = rows_[wanted[i]] = rows[i];
    if (purpose != Purpose::ranges) continue;
    const auto begin = begin_of_gate(graph, parameters, consumers, wanted[i]);
    if (begin.defined())
      kept = distribution::elementwise({kept, begin},
                                       [](const auto& in) { return in[0].maximum(in[1]); });
  }
}

distribution::Values InferredValues::of(NodeId node) const {
  auto rows = distribution::distinct(rows_.at(before_clip(node)));
  if (rows.size(1) > kMostValues) {
    const auto chosen = at::linspace(0, rows.size(1) - 1, kMostValues, at::kDouble).round();
    rows = rows.index_select(1, chosen.to(at::kLong).to(rows.device()));
  }
  auto [values, probabilities] = distribution::interpolated(rows);
  return {clipped(node, values), probabilities.unsqueeze(1)};
}

at::Tensor InferredValues::mean_of(
    NodeId node, const std::function<at::Tensor(const at::Tensor&)>& function) const {
  return distribution::elementwise({rows_.at(before_clip(node))}, [&](const auto& in) {
    std::vector<at::Tensor> means;
    for (const auto& rows : in[0].flatten(1).split(kMostValues, 1)) {
      const auto [values, probabilities] = distribution::interpolated(rows);
      means.push_back(at::mv(function(clipped(node, values)).t(), probabilities));
    }
    auto shape = in[0].sizes().vec();
    shape[0] = 1;
    return at::cat(means).view(shape);
  });
}

bool InferredValues::is_plain_clip(NodeId id) const {
  return models::is<models::Clip>(graph_[id]) && !graph_[id].params.contains("upper");
}

NodeId InferredValues::before_clip(NodeId id) const {
  if (!is_plain_clip(id)) return id;
  id = graph_[id].inputs[0];
  while (activation_quantizer(graph_[id])) id = graph_[id].inputs[0];
  return id;
}

at::Tensor InferredValues::clipped(NodeId id, const at::Tensor& values) const {
  if (!is_plain_clip(id)) return values;
  const auto* clip = models::get_if<models::Clip>(graph_[id]);
  return values.clamp(clip->lo, clip->hi);
}

}  // namespace zsq::quant
