// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/student_layers.h"

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

}  // namespace zsq::pipeline
