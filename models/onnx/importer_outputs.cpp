// SPDX-License-Identifier: Apache-2.0
// The outputs of a file as one row of its graph.
#include "core/error.h"
#include "models/onnx/ending.h"
#include "models/onnx/importer.h"
#include "models/onnx/meaning.h"
#include "models/recognize_functions.h"

namespace zsq::models::onnx {

NodeId Importer::output_node(const FileOutput& output) const {
  const auto* found = find(output.value);
  if (!found || found->node < 0 || found->quantized) {
    throw Error(ErrorCode::unsupported_model,
                "the output '" + output.name + "' does not depend on the image as a float tensor");
  }
  if (!found->is_plain()) {
    throw Error(ErrorCode::unsupported_model,
                "the output '" + output.name +
                    "' does not have the images of the batch in its first dimension");
  }
  return found->node;
}

NodeId Importer::as_row(NodeId output, const std::string& name) {
  if (shape(output).size() == 2) return output;
  Op flat = Flatten{};
  if (shape(output).size() < 2) flat = Reshape{{1}};
  return add_node(name + ".classes", std::move(flat), {output});
}

void Importer::set_output(const FileOutput& output) {
  auto& graph = model_.graph;
  graph.output = output_node(output);
  const Shape shape_in_file = shape(graph.output);
  recognize_functions(model_);
  const auto ending = find_ending(graph, shapes_, log_softmaxes_, graph.output);
  graph.output = as_row(ending.node, output.value);
  model_.classes = shape(graph.output)[1];
  graph.signature.function = ending.function;
  Output described{.name = output.name, .shape = {}, .kind = ending.kind};
  if (shape_in_file.size() > 1)
    described.shape.assign(shape_in_file.begin() + 1, shape_in_file.end());
  graph.signature.kind = meaning_of(described, options_.outputs);
  if (shape_in_file.size() > 2) graph.signature.output_shape = described.shape;
}

NodeId Importer::row_of(const std::vector<NodeId>& nodes, const std::vector<FileOutput>& outputs) {
  std::vector<NodeId> rows;
  for (std::size_t i = 0; i < nodes.size(); ++i) rows.push_back(as_row(nodes[i], outputs[i].value));
  return rows.size() == 1 ? rows[0] : add_node("outputs", Concat{1}, rows);
}

void Importer::set_outputs(const std::vector<FileOutput>& of_file) {
  auto& graph = model_.graph;
  std::vector<NodeId> nodes;
  for (const auto& output : of_file) nodes.push_back(output_node(output));
  graph.output = row_of(nodes, of_file);
  recognize_functions(model_);
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto [node, output] = describe_output(graph, shapes_, log_softmaxes_, nodes[i], of_file[i].name,
                                          nodes.size() == 1);
    nodes[i] = node;
    outputs.push_back(std::move(output));
  }
  expect_values_beside_probabilities(outputs);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Output& output = outputs[i];
    if (of_file[i].classes) expect_classes(*of_file[i].classes, output);
    output.kind = meaning_of(output, options_.outputs);
    if (output.kind == OutputKind::logits && !is_row(shape(nodes[i])))
      output.kind = OutputKind::map;
    if (output.kind == OutputKind::map && output.shape.size() < 2) output.kind = OutputKind::logits;
  }
  graph.output = row_of(nodes, of_file);
  model_.classes = shape(graph.output)[1];
  graph.signature.kind = OutputRow(std::move(outputs));
}

}  // namespace zsq::models::onnx
