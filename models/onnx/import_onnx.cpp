// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/error.h"
#include "models/onnx/importer.h"
#include "models/onnx/input_layout.h"
#include "models/onnx/open_size.h"
#include "models/onnx/opsets.h"
#include "models/onnx/tail_builder.h"

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

using LiveNodes = std::vector<const proto::Node*>;

// Nodes that the outputs depend on, in file order.
LiveNodes live_nodes(const proto::Graph& graph) {
  if (graph.outputs.empty()) throw Error(ErrorCode::unsupported_model, "the network has no output");
  std::set<std::string> needed;
  for (const auto& output : graph.outputs) needed.insert(output.name);
  LiveNodes live;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const proto::Node& node = graph.nodes[i];
    const auto used = [&](const std::string& name) { return needed.count(name) > 0; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), used)) continue;
    for (auto& name : node.reads())
      if (!name.empty()) needed.insert(std::move(name));
    live.push_back(&node);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

// Inputs that are not initializers.
std::vector<const proto::ValueInfo*> inputs_of(const proto::Graph& graph) {
  std::set<std::string_view> initializers;
  for (const auto& [name, array] : graph.initializers) initializers.insert(name);
  std::vector<const proto::ValueInfo*> inputs;
  for (const auto& input : graph.inputs)
    if (!initializers.contains(input.name)) inputs.push_back(&input);
  return inputs;
}

// The one of them on which the outputs depend.
const proto::ValueInfo& image_input(const proto::Graph& graph, const LiveNodes& live) {
  auto inputs = inputs_of(graph);
  if (inputs.empty()) throw Error(ErrorCode::unsupported_model, "the network has no input");
  if (inputs.size() == 1) return *inputs[0];
  std::set<std::string> read;
  for (const auto& output : graph.outputs) read.insert(output.name);
  for (const auto* node : live)
    for (auto& name : node->reads()) read.insert(std::move(name));
  std::erase_if(inputs, [&](const auto* input) { return !read.contains(input->name); });
  if (inputs.empty())
    throw Error(ErrorCode::unsupported_model, "the network's outputs depend on none of its inputs");
  if (inputs.size() > 1)
    throw Error(ErrorCode::unsupported_model, "the network has more than one input: '" +
                                                  inputs[0]->name + "' and '" + inputs[1]->name +
                                                  "'; one image batch was expected");
  return *inputs[0];
}

void begin(onnx::Importer& importer, const formats::onnx::Model& file, const LiveNodes& live) {
  for (const auto& [name, array] : file.graph.initializers) {
    importer.add_initializer(name, to_tensor(array), array.dtype == formats::DType::u4);
  }
  const auto& image = image_input(file.graph, live);
  Shape shape;
  for (const auto& dimension : image.shape) shape.push_back(dimension.value);
  importer.add_input(image.name, shape,
                     onnx::input_layout(live, file.graph.initializers, image.name, shape));
  for (const auto* node : live) {
    for (const auto& input : node->reads()) importer.count_use(input);
  }
  for (const auto& output : file.graph.outputs) importer.count_use(output.name);
}

Model import_at_one_size(const formats::onnx::Model& file, const LoadOptions& options) {
  onnx::Importer importer(file.opset, options);
  const auto live = live_nodes(file.graph);
  begin(importer, file, live);
  for (const auto* input : inputs_of(file.graph))
    if (input->name != importer.input_name())
      importer.warnings().push_back("the input '" + input->name +
                                    "' is left out, as no output depends on it");
  onnx::TailBuilder tail(file, live, importer);
  for (const auto* node : live) {
    if (tail.reaches(*node)) {
      tail.add(*node);
      continue;
    }
    try {
      importer.convert(*node, tail.is_before_convolution(*node));
    } catch (const ShapeError&) {  // left to a runtime it would be no better
      throw;
    } catch (const Error& error) {
      tail.add(*node, &error);
    }
  }
  std::vector<onnx::FileOutput> outputs;
  for (const auto& output : file.graph.outputs) outputs.push_back({output.name, output.name});
  if (!tail.empty()) {
    outputs = tail.finish();
    onnx::Importer again(file.opset, options);
    begin(again, file, live);
    tail.count_multiplications(again);
    importer.warnings().push_back("the end of the network stays as it is, in float: " +
                                  tail.operators() + " (" + tail.reason() + ")");
  }
  auto model =
      tail.empty() ? importer.finish(outputs) : importer.finish(outputs, std::move(tail).tail());
  model.graph.signature.input = importer.input_name();
  model.graph.signature.output = outputs[0].name;
  model.format = "onnx";
  model.producer = file.producer_name;
  if (!file.producer_version.empty()) model.producer += " " + file.producer_version;
  return model;
}

// What an exported file records of sizes that it leaves open, if the options say nothing of them.
LoadOptions with_recorded_sizes(const formats::onnx::Model& file, LoadOptions options) {
  const auto refuse = [](const std::string& key, const std::string& text, const char* expected) {
    throw Error(ErrorCode::bad_input,
                "the metadata " + key + " is '" + text + "'; " + expected + " was expected");
  };
  const auto is_plausible = [](std::int64_t n) { return n >= 1 && n <= onnx::kMaxExtent; };
  const auto size = file.metadata.find(kImageSizeKey);
  if (options.image_size[0] < 1 && size != file.metadata.end()) {
    const char* text = size->second.c_str();
    char* rest = nullptr;
    options.image_size[0] = std::strtoll(text, &rest, 10);
    if (*rest == 'x') options.image_size[1] = std::strtoll(rest + 1, nullptr, 10);
    if (!std::ranges::all_of(options.image_size, is_plausible))
      refuse(kImageSizeKey, size->second, "height x width as 224x320");
  }
  const auto channels = file.metadata.find(kChannelsKey);
  if (options.channels < 1 && channels != file.metadata.end()) {
    options.channels = std::strtoll(channels->second.c_str(), nullptr, 10);
    if (!is_plausible(options.channels))
      refuse(kChannelsKey, channels->second, "a number of channels");
  }
  return options;
}

// What a wrong size would look like, where the file leaves it open.
Model import_at_given_size(const formats::onnx::Model& file, const LoadOptions& options) {
  try {
    return import_at_one_size(file, options);
  } catch (const ShapeError& error) {
    const auto& shape = image_input(file.graph, live_nodes(file.graph)).shape;
    const auto is_open = [](const auto& one) { return one.value < 1; };
    if (shape.size() < 3 || std::none_of(shape.begin() + 2, shape.end(), is_open)) throw;
    throw Error(error.code(), std::string(error.what()) +
                                  ". The file leaves its image size open, " +
                                  "and this follows from " + std::to_string(options.image_size[0]) +
                                  "x" + std::to_string(options.image_size[1]) +
                                  ": give the size that the network was made for (--image_size)");
  }
}

// How the nodes follow the sides that are open, told from two larger images. The sides of one are
// larger by what strides divide by. Those of the other leave another rest, so that what differs by
// rounding alone differs there, but a network may not take it.
std::optional<OpenForms> forms_of(const formats::onnx::Model& file, const LoadOptions& options,
                                  const Model& model, const std::array<bool, 2>& open) {
  constexpr std::array<std::int64_t, 2> kMore{64, 128}, kRest{37, 21};
  LoadOptions larger = options, odd = options;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!open[i]) continue;
    larger.image_size[i] += kMore[i];
    odd.image_size[i] += kRest[i];
  }
  std::vector<Model> at_sizes{model};
  try {
    at_sizes.push_back(import_at_one_size(file, larger));
  } catch (const Error&) {
    return std::nullopt;
  }
  try {
    at_sizes.push_back(import_at_one_size(file, odd));
  } catch (const Error&) {  // it takes multiples of its strides alone
  }
  return onnx::open_forms(at_sizes);
}

}  // namespace

Model import_onnx(const formats::onnx::Model& file, const LoadOptions& given) {
  check_versions(file);
  const LoadOptions options = with_recorded_sizes(file, given);
  auto model = import_at_given_size(file, options);
  auto& signature = model.graph.signature;
  const std::array open{signature.open_height, signature.open_width};
  signature.open_height = signature.open_width = false;
  if (signature.tail) return model;  // whose nodes are not known
  // A network may squeeze one side away, and be of any length along the other.
  for (const auto& sides : {std::array{true, true}, {false, true}, {true, false}}) {
    if ((sides[0] && !open[0]) || (sides[1] && !open[1])) continue;
    auto forms = forms_of(file, options, model, sides);
    if (!forms) continue;
    signature.open_forms = std::move(*forms);
    signature.open_height = sides[0];
    signature.open_width = sides[1];
    break;
  }
  return model;
}

}  // namespace zsq::models
