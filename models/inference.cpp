// SPDX-License-Identifier: Apache-2.0
#include "models/inference.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/batch_norm_chain.h"
#include "models/execute.h"
#include "models/stored_tensor.h"
#include "models/unused_nodes.h"

namespace zsq::models {
namespace {

constexpr std::int64_t kMostAtOnce = 64;

bool is_stored(const Node& node) {
  const auto* custom = get_if<Custom>(node);
  return custom && dynamic_cast<const StoredTensor*>(custom->op.get());
}

// Convolutions of images that lie channels_last want their weights so as well.
at::Tensor laid_out(const at::Tensor& value, bool channels_last) {
  return channels_last && value.dim() == 4 ? value.contiguous(at::MemoryFormat::ChannelsLast)
                                           : value;
}

// Nodes that read constants alone become what they give.
void compute_constants(Graph& graph, const ParameterStore& parameters, bool channels_last) {
  const auto value_of = [&](NodeId id) { return execute_node(graph[id], {}, parameters); };
  for (Node& node : graph.nodes) {
    const bool constant =
        is<Parameter>(node) ||
        (!node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                             [&](NodeId id) { return is_stored(graph[id]); }));
    if (!constant) continue;
    std::vector<at::Tensor> inputs;
    for (const NodeId id : node.inputs) inputs.push_back(value_of(id));
    const at::Tensor value = execute_node(node, inputs, parameters);
    node = {node.name, Custom{std::make_shared<StoredTensor>(laid_out(value, channels_last))}, {}};
  }
}

void fold(Graph& graph, ParameterStore& parameters, NodeId layer, const Node& norm) {
  const auto of_norm = [&](const char* role) { return parameters.at(norm.params.at(role)); };
  Node& node = graph[layer];
  const at::Tensor t =
      of_norm("gamma") / (of_norm("variance") + get_if<BatchNorm>(norm)->eps).sqrt();
  const at::Tensor weight = node.inputs.size() > 1
                                ? execute_node(graph[node.inputs[1]], {}, parameters)
                                : parameters.at(node.params.at("weight"));
  const at::Tensor bias =
      node.params.contains("bias") ? parameters.at(node.params.at("bias")) : at::zeros_like(t);
  node.inputs.resize(1);
  node.params = {{"weight", node.name + ".folded_weight"}, {"bias", node.name + ".folded_bias"}};
  parameters.set(node.params["weight"], weight * t.reshape({-1, 1, 1, 1}));
  parameters.set(node.params["bias"], t * (bias - of_norm("mean")) + of_norm("beta"));
}

void fold_batch_norms(Graph& graph, ParameterStore& parameters) {
  const auto consumers = graph.consumers();
  std::vector<NodeId> now(graph.nodes.size());  // where what a node gave is found
  std::iota(now.begin(), now.end(), 0);
  for (NodeId id = 0; id < static_cast<NodeId>(now.size()); ++id) {
    const Node& layer = graph[id];
    const NodeId norm = following_batch_norm(graph, consumers, id);
    if (!is<Conv2d>(layer) || norm < 0) continue;
    if (layer.inputs.size() > 1 && !is_stored(graph[layer.inputs[1]])) continue;
    fold(graph, parameters, id, graph[norm]);
    now[static_cast<std::size_t>(norm)] = id;
  }
  for (Node& node : graph.nodes)
    for (NodeId& input : node.inputs) input = now[static_cast<std::size_t>(input)];
  graph.output = now[static_cast<std::size_t>(graph.output)];
}

std::int64_t images_at_once(const Graph& graph, const ParameterStore& parameters) {
  double largest = 1;
  for (const Shape& shape : infer_shapes(graph, parameters))
    largest =
        std::max(largest, std::accumulate(shape.begin(), shape.end(), 4.0, std::multiplies<>()));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(Inference::kBytesOfLargest / largest),
                                  1, kMostAtOnce);
}

}  // namespace

Inference::Inference(const Graph& graph, const ParameterStore& parameters)
    : graph_(graph),
      parameters_(parameters),
      on_cpu_(parameters.device().is_cpu()),
      images_at_once_(on_cpu_ ? images_at_once(graph, parameters) : kMostAtOnce) {
  const at::NoGradGuard no_grad;
  compute_constants(graph_, parameters_, on_cpu_);
  fold_batch_norms(graph_, parameters_);
  graph_ = drop_unused_nodes(graph_);
  if (!on_cpu_) return;
  for (const Node& node : graph_.nodes)
    if (const auto found = node.params.find("weight"); found != node.params.end())
      parameters_.set(found->second, laid_out(parameters_.at(found->second), true));
}

at::Tensor Inference::operator()(const at::Tensor& images) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& batch : images.split(images_at_once_))
    parts.push_back(execute(graph_, parameters_, laid_out(batch, on_cpu_)));
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

}  // namespace zsq::models
