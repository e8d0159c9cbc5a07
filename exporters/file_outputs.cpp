// SPDX-License-Identifier: Apache-2.0
#include "exporters/file_outputs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "core/error.h"

namespace zsq::exporters {
namespace {

using formats::onnx::Node;
using models::NodeId;

// Inputs of operators that were attributes before some opset.
struct BecameInput {
  const char* attribute;
  std::int64_t opset;
};
const std::map<std::string_view, BecameInput>& became_inputs() {
  static const std::map<std::string_view, BecameInput> operators{
      {"Squeeze", {"axes", 13}},         {"Unsqueeze", {"axes", 13}},
      {"ReduceSum", {"axes", 13}},       {"Split", {"split", 13}},
      {"ReduceMax", {"axes", 18}},       {"ReduceMin", {"axes", 18}},
      {"ReduceMean", {"axes", 18}},      {"ReduceProd", {"axes", 18}},
      {"ReduceL1", {"axes", 18}},        {"ReduceL2", {"axes", 18}},
      {"ReduceLogSum", {"axes", 18}},    {"ReduceLogSumExp", {"axes", 18}},
      {"ReduceSumSquare", {"axes", 18}},
  };
  return operators;
}

// From this opset on a node says the same in all later ones, but for became_inputs().
constexpr std::int64_t kOldestTail = 11;
// From its opset on, a node of these says something else, or is not valid.
constexpr std::pair<std::string_view, std::int64_t> kNewMeanings[] = {
    {"Softmax", 13},    {"LogSoftmax", 13},         {"Hardmax", 13},
    {"GridSample", 20}, {"GroupNormalization", 21}, {"DFT", 20}};

Node in_later_opset(OnnxBuilder& builder, Node node, const models::Tail& tail) {
  const std::int64_t opset = builder.model().opset;
  if (!formats::onnx::is_default_domain(node.domain)) return node;
  const bool changed = std::ranges::any_of(kNewMeanings, [&](const auto& one) {
    return one.first == node.op_type && tail.opset < one.second && opset >= one.second;
  });
  const bool older = tail.opset < 13 && opset >= 13;
  if (tail.opset < kOldestTail || changed || (older && !node.subgraphs().empty()))
    throw Error(ErrorCode::unsupported_model, "the network ends in " + models::operators_of(tail) +
                                                  ", which stay as they are, "
                                                  "and its opset " +
                                                  std::to_string(tail.opset) +
                                                  " cannot be written as " + std::to_string(opset) +
                                                  ": export it with opset_version=17");
  // Equal parts without their number, which a Split of opset 18 must name.
  if (node.op_type == "Split" && node.inputs.size() == 1 && !node.find("split") &&
      tail.opset < 18 && opset >= 18)
    node.attributes.push_back({"num_outputs", static_cast<std::int64_t>(node.outputs.size())});
  const auto rule = became_inputs().find(node.op_type);
  if (rule == became_inputs().end() || tail.opset >= rule->second.opset ||
      opset < rule->second.opset)
    return node;
  const auto* attribute = node.find(rule->second.attribute);
  if (!attribute) return node;
  const auto values = std::get<std::vector<std::int64_t>>(attribute->value);
  std::erase_if(node.attributes,
                [&](const auto& one) { return one.name == rule->second.attribute; });
  node.inputs.push_back(
      builder.integers(builder.unique(node.outputs.at(0) + "." + rule->second.attribute), values));
  return node;
}

bool is_flattened(const models::Graph& graph, NodeId id) {
  return models::is<models::Flatten>(graph[id]) || models::is<models::Reshape>(graph[id]);
}

formats::onnx::ValueInfo value_info(const std::string& name, const models::Shape& shape) {
  formats::onnx::ValueInfo info;
  info.name = name;
  info.shape.push_back({-1, "N"});
  for (std::size_t d = 1; d < shape.size(); ++d) info.shape.push_back({shape[d], ""});
  return info;
}

}  // namespace

formats::onnx::ValueInfo describe_input(const models::Signature& file, const std::string& name,
                                        const models::Shape& of_node) {
  auto info = value_info(name, of_node);
  if (file.open_channels && !file.one_image) info.shape.at(1) = {-1, "C"};
  if (file.open_height) info.shape.at(2) = {-1, "H"};
  if (file.open_width) info.shape.at(3) = {-1, file.one_dimensional ? "L" : "W"};
  if (file.channels_last)
    std::rotate(info.shape.begin() + 1, info.shape.begin() + 2, info.shape.end());
  if (file.one_dimensional) info.shape.erase(info.shape.begin() + 2);
  if (file.one_image) info.shape.erase(info.shape.begin());
  return info;
}

std::string from_file_layout(OnnxBuilder& builder, const models::Signature& file,
                             const std::string& x, const models::Shape& of_node) {
  if (file.one_image)
    return builder.node("Unsqueeze", {x, builder.integers(x + ".batch_axis", {0})}, x + ".batch");
  if (file.one_dimensional)
    return builder.node("Reshape",
                        {x, builder.integers(x + ".map", {0, of_node.at(1), 1,
                                                          file.open_width ? -1 : of_node.at(3)})},
                        x + ".as_map");
  if (file.channels_last)
    return builder.node("Transpose", {x}, x + ".channels_first",
                        {{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}});
  return x;
}

formats::onnx::ValueInfo describe_output(const models::Signature& file, const FileOutput& output,
                                         const models::Shape& of_node) {
  auto info = value_info(output.name, output.full_shape(of_node));
  if ((file.open_height || file.open_width) && !output.is_row)
    for (std::size_t d = 1; d < info.shape.size(); ++d) info.shape[d] = {-1, ""};
  return info;
}

std::string size_in_words(const models::Shape& image) {
  return std::to_string(image.at(2)) + "x" + std::to_string(image.at(3));
}

models::Shape FileOutput::full_shape(const models::Shape& of_node) const {
  if (is_row && shape.empty()) return of_node;
  models::Shape full{1};
  full.insert(full.end(), shape.begin(), shape.end());
  return full;
}

std::vector<FileOutput> file_outputs(const models::Graph& graph) {
  const models::Signature& file = graph.signature;
  const auto& outputs = file.kind.outputs();
  if (outputs.empty())
    return {{graph.output, file.output, file.function, 1, file.output_shape, true}};
  std::vector<FileOutput> found;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NodeId row = outputs.size() == 1 ? graph.output : graph[graph.output].inputs.at(i);
    const NodeId node = joins_outputs(graph, row) ? graph[row].inputs[0] : row;
    found.push_back(
        {node, outputs[i].name, outputs[i].function, outputs[i].axis, outputs[i].shape});
  }
  return found;
}

void require_one_row(const models::Signature& file, const std::string& target) {
  if (file.kind.outputs().empty() && !file.tail) return;
  throw Error(ErrorCode::unsupported_model,
              "target " + target + " cannot hold " +
                  (file.tail ? "the end of this network, which stays as ONNX has it (" +
                                   models::operators_of(*file.tail) + ")"
                             : "several outputs, or one with places") +
                  "; onnxruntime, openvino, tensorrt, generic and qcdq can");
}

bool joins_outputs(const models::Graph& graph, NodeId id) {
  const std::size_t outputs = graph.signature.kind.outputs().size();
  if (outputs == 0) return false;
  if (id == graph.output) return outputs > 1 || is_flattened(graph, id);
  if (outputs == 1 || !is_flattened(graph, id)) return false;
  const auto& rows = graph[graph.output].inputs;
  if (std::ranges::find(rows, id) == rows.end()) return false;
  // Another node may read the flat one.
  return std::ranges::none_of(graph.nodes, [&](const models::Node& node) {
    return &node != &graph[graph.output] && std::ranges::find(node.inputs, id) != node.inputs.end();
  });
}

void write_output(OnnxBuilder& builder, const std::string& x, const models::Shape& shape,
                  const FileOutput& output) {
  using models::OutputFunction;
  std::string y = x;
  const auto reshape = [&] {
    if (output.full_shape(shape) == shape) return;
    std::vector<std::int64_t> target{0};  // 0: the batch as it is
    target.insert(target.end(), output.shape.begin(), output.shape.end());
    y = builder.node("Reshape", {y, builder.integers(output.name + ".shape", target)}, "shaped");
  };
  if (!output.is_row) reshape();
  const auto function = [&](const char* type, OnnxBuilder::Attributes attributes) {
    y = builder.node(type, {y}, "probabilities", std::move(attributes));
  };
  if (output.function == OutputFunction::softmax) function("Softmax", {{"axis", output.axis}});
  if (output.function == OutputFunction::log_softmax)
    function("LogSoftmax", {{"axis", output.axis}});
  if (output.function == OutputFunction::sigmoid) function("Sigmoid", {});
  if (output.is_row) reshape();
  // Others may read x under its own name.
  if (y == x && !output.is_row) y = builder.node("Identity", {x}, "same");
  builder.rename(y, output.name);
}

void reserve_names(OnnxBuilder& builder, const models::Tail& tail) {
  for (const auto& node : tail.nodes) {
    if (!node.name.empty()) builder.unique(node.name);
    for (const auto& name : node.gives())
      if (!name.empty()) builder.unique(name);
  }
  for (const auto& [name, array] : tail.constants) builder.unique(name);
}

void write_tail(OnnxBuilder& builder, const models::Signature& file) {
  const models::Tail& tail = *file.tail;
  builder.require_opset(tail.opset);
  formats::onnx::Graph& graph = builder.model().graph;
  for (const auto& node : tail.nodes) graph.nodes.push_back(in_later_opset(builder, node, tail));
  builder.model().domains = tail.domains;
  for (const auto& constant : tail.constants) graph.initializers.push_back(constant);
  graph.outputs = tail.outputs;
  if (tail.batch > 0 && !file.one_image)
    for (auto& input : graph.inputs) input.shape.at(0) = {tail.batch, ""};
}

}  // namespace zsq::exporters
