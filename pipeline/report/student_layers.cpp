// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/student_layers.h"

#include <functional>
#include <numeric>
#include <set>

#include "models/execute.h"
#include "models/load.h"
#include "models/tail.h"

namespace zsq::pipeline {
namespace {

// Operators that hand quantized values on without leaving their grid.
bool keeps_values(const models::Node& node) {
  using namespace models;
  return is<MaxPool>(node) || is<Flatten>(node) || is<Reshape>(node) || is<Transpose>(node) ||
         is<Slice>(node) || is<Resize>(node);
}

const quant::ActivationQuantizer* quantizer_of_value(const models::Graph& graph,
                                                     models::NodeId id) {
  while (keeps_values(graph[id])) id = graph[id].inputs.front();
  return quant::activation_quantizer(graph[id]);
}

double product_of(const models::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

}  // namespace

std::vector<StudentLayer> student_layers(const quant::Student& student) {
  std::vector<StudentLayer> layers;
  for (const quant::WeightSite& site : quant::weight_sites(student)) {
    const models::Node& layer = student.graph[site.layer];
    const auto* input = quantizer_of_value(student.graph, layer.inputs.front());
    layers.push_back({layer.name, models::op_name(layer.op), site.op->spec().num_bits,
                      input ? input->spec().num_bits : 0, site.op, input, site.parameter});
  }
  return layers;
}

double float_share(const quant::Student& student,
                   const std::vector<exporters::ExecutesAs>& layers) {
  std::set<std::string> integer;
  for (const auto& layer : layers)
    if (layer.executes_as != "float") integer.insert(layer.layer);
  models::Model network;
  network.graph = student.graph;
  network.parameters = student.parameters;
  const auto of_layers = models::multiply_accumulates(network);
  const auto shapes = models::infer_shapes(student.graph, student.parameters);
  const auto& tail = student.graph.signature.tail;
  double all = tail ? tail->multiplications : 0, in_float = all;
  for (std::size_t id = 0; id < student.graph.nodes.size(); ++id) {
    const models::Node& node = student.graph.nodes[id];
    auto count = static_cast<double>(of_layers[id]);
    if (models::is<models::MatMul>(node))
      count = product_of(shapes[id]) *
              static_cast<double>(shapes[static_cast<std::size_t>(node.inputs[0])].back());
    all += count;
    if (!integer.contains(node.name)) in_float += count;
  }
  return all > 0 ? in_float / all : 0;
}

}  // namespace zsq::pipeline
