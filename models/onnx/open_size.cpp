// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/open_size.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include <algorithm>

#include "models/execute.h"
#include "models/onnx/open_node.h"

namespace zsq::models::onnx {
namespace {

bool same_parameters(const Model& a, const Model& b) {
  const auto& names = a.parameters.names();
  return names == b.parameters.names() && std::ranges::all_of(names, [&](const std::string& name) {
           const auto &x = a.parameters.at(name), &y = b.parameters.at(name);
           return x.sizes() == y.sizes() && at::equal(x, y);
         });
}

// What joins the outputs to one row is not in the file.
bool flattens_an_output(const Graph& graph, NodeId id) {
  if (graph.signature.kind.outputs().empty() || !is<Flatten>(graph[id])) return false;
  return id == graph.output ||
         std::ranges::find(graph[graph.output].inputs, id) != graph[graph.output].inputs.end();
}

// An exported file brings an output into its shape by numbers, unless the node before has it.
bool outputs_follow(const std::vector<Sample>& samples) {
  const Graph& graph = samples[0].model.graph;
  const auto& outputs = graph.signature.kind.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto same = [&](const Sample& other) {
      return other.model.graph.signature.kind.outputs().at(i).shape == outputs[i].shape;
    };
    if (std::ranges::all_of(samples, same)) continue;
    auto node = outputs.size() == 1 ? graph.output : graph[graph.output].inputs.at(i);
    if (is<Flatten>(graph[node])) node = graph[node].inputs[0];
    const Shape& shape = samples[0].shape(node);
    if (!std::ranges::equal(shape.begin() + 1, shape.end(), outputs[i].shape.begin(),
                            outputs[i].shape.end()))
      return false;
  }
  return true;
}

bool same_outline(const Model& a, const Model& b) {
  const Signature &x = a.graph.signature, &y = b.graph.signature;
  return !x.tail && !y.tail && a.graph.nodes.size() == b.graph.nodes.size() &&
         x.output_shape == y.output_shape && x.kind.outputs().size() == y.kind.outputs().size() &&
         same_parameters(a, b);
}

}  // namespace

std::optional<OpenForms> open_forms(const std::vector<Model>& at_sizes) {
  std::vector<Sample> samples;
  for (const Model& model : at_sizes) {
    if (!same_outline(at_sizes[0], model)) return std::nullopt;
    samples.push_back({model, infer_shapes(model.graph, model.parameters)});
  }
  OpenForms forms;
  const Graph& graph = at_sizes[0].graph;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const auto alike = [&](const Sample& other) {
      const Node& node = other.model.graph[id];
      return node.inputs == graph[id].inputs && node.params == graph[id].params;
    };
    if (!std::ranges::all_of(samples, alike)) return std::nullopt;
    if (flattens_an_output(graph, id)) continue;
    const auto form = open_form(samples, id);
    if (!form) return std::nullopt;
    if (!is_op<Input>(*form)) forms.emplace(graph[id].name, *form);
  }
  if (!outputs_follow(samples)) return std::nullopt;
  return forms;
}

}  // namespace zsq::models::onnx
