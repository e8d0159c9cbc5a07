// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "models/onnx/importer.h"
#include "models/onnx/input_layout.h"
#include "models/onnx/opsets.h"

namespace zsq::models {
namespace {

namespace proto = formats::onnx;
using onnx::kFirstOpset, onnx::kLastOpset;

void check_versions(const proto::Model& file) {
  if (file.opset < kFirstOpset || file.opset > kLastOpset) {
    throw Error(ErrorCode::unsupported_model,
                "the ONNX file uses opset " + std::to_string(file.opset) + "; opsets " +
                    std::to_string(kFirstOpset) + " to " + std::to_string(kLastOpset) +
                    " are known: export it with opset_version=17");
  }
}

// The one input that is not an initializer.
const proto::ValueInfo& image_input(const proto::Graph& graph) {
  std::set<std::string_view> initializers;
  for (const auto& [name, array] : graph.initializers) initializers.insert(name);
  const proto::ValueInfo* image = nullptr;
  for (const auto& input : graph.inputs) {
    if (initializers.count(input.name)) continue;
    if (image) {
      throw Error(ErrorCode::unsupported_model, "the network has more than one input: '" +
                                                    image->name + "' and '" + input.name +
                                                    "'; one image batch was expected");
    }
    image = &input;
  }
  if (!image) throw Error(ErrorCode::unsupported_model, "the network has no input");
  return *image;
}

// Nodes that the one output depends on, in file order.
std::vector<const proto::Node*> live_nodes(const proto::Graph& graph) {
  if (graph.outputs.size() != 1) {
    throw Error(ErrorCode::unsupported_model, "the network has " +
                                                  std::to_string(graph.outputs.size()) +
                                                  " outputs; one, the logits, was expected");
  }
  std::set<std::string> needed{graph.outputs[0].name};
  std::vector<const proto::Node*> live;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const proto::Node& node = graph.nodes[i];
    const auto used = [&](const std::string& name) { return needed.count(name) > 0; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), used)) continue;
    needed.insert(node.inputs.begin(), node.inputs.end());
    needed.erase("");
    live.push_back(&node);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

}  // namespace

Model import_onnx(const formats::onnx::Model& file, const LoadOptions& options) {
  check_versions(file);
  onnx::Importer importer(file.opset, options);
  for (const auto& [name, array] : file.graph.initializers) {
    importer.add_initializer(name, to_tensor(array), array.dtype == formats::DType::u4);
  }
  const auto& image = image_input(file.graph);
  Shape shape;
  for (const auto& dimension : image.shape) shape.push_back(dimension.value);
  const auto live = live_nodes(file.graph);
  importer.add_input(image.name, shape, onnx::reads_channels_last(live, image.name, shape));
  for (const auto* node : live) {
    for (const auto& input : node->inputs) importer.count_use(input);
  }
  const auto& output = file.graph.outputs[0].name;
  importer.count_use(output);
  for (const auto* node : live) importer.convert(*node);
  auto model = importer.finish(output);
  model.graph.signature.input = image.name;
  model.graph.signature.output = output;
  model.format = "onnx";
  model.producer = file.producer_name;
  if (!file.producer_version.empty()) model.producer += " " + file.producer_version;
  return model;
}

}  // namespace zsq::models
