// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/importer.h"

#include <algorithm>
#include <ranges>

#include "core/error.h"
#include "models/onnx/canonicalize.h"

namespace zsq::models::onnx {
namespace {

constexpr std::int64_t kFirstOpset = 7, kLastOpset = 21;

std::string known_operators() {
  std::string list;
  for (const auto& [name, rule] : registry()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

bool default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

}  // namespace

Importer::Importer(const proto::Model& file, const LoadOptions& options)
    : file_(file), options_(options) {
  if (file.opset < kFirstOpset || file.opset > kLastOpset) {
    throw Error(ErrorCode::unsupported_model,
                "the ONNX file uses opset " + std::to_string(file.opset) + "; opsets " +
                    std::to_string(kFirstOpset) + " to " + std::to_string(kLastOpset) +
                    " are known: export it with opset_version=17");
  }
}

Model Importer::run() {
  add_initializers();
  add_input();
  for (const auto* node : live_nodes()) {
    for (const auto& input : node->inputs) ++uses_[input];
  }
  ++uses_[file_.graph.outputs[0].name];
  for (const auto* node : live_nodes()) convert(*node);
  model_.graph.output = output();
  model_.classes = shapes_[static_cast<std::size_t>(model_.graph.output)][1];
  model_.graph = drop_unused_nodes(model_.graph);
  model_.format = "onnx";
  model_.producer = file_.producer_name;
  if (!file_.producer_version.empty()) model_.producer += " " + file_.producer_version;
  return std::move(model_);
}

void Importer::add_initializers() {
  for (const auto& [name, array] : file_.graph.initializers) {
    values_[name].constant = to_tensor(array);
    initializers_.insert(name);
  }
}

void Importer::add_input() {
  const proto::ValueInfo* image = nullptr;
  for (const auto& input : file_.graph.inputs) {
    if (initializers_.count(input.name)) continue;
    if (image) {
      throw Error(ErrorCode::unsupported_model, "the network has more than one input: '" +
                                                    image->name + "' and '" + input.name +
                                                    "'; one image batch was expected");
    }
    image = &input;
  }
  if (!image || image->shape.size() != 4) {
    throw Error(ErrorCode::unsupported_model,
                image
                    ? "the input '" + image->name + "' has " + std::to_string(image->shape.size()) +
                          " dimensions; N x C x H x W " + "was expected"
                    : std::string("the network has no input"));
  }
  fixed_batch_ = image->shape[0].value;
  auto& shape = model_.graph.input_shape;
  for (std::size_t i = 0; i < 3; ++i) {
    shape[i] = image->shape[i + 1].value;
    if (shape[i] < 1 && i > 0) shape[i] = options_.image_size;
    if (shape[i] > kMaxExtent) {
      throw Error(ErrorCode::bad_input, "an image with a side or with channels of " +
                                            std::to_string(shape[i]) + " is not plausible");
    }
    if (shape[i] < 1) {
      throw Error(ErrorCode::bad_input,
                  i == 0 ? "the file leaves the number of image channels open"
                         : "the file leaves height or width open: give the image size");
    }
  }
  const auto id = model_.graph.add({unique_name(image->name), Input{}, {}});
  model_.graph.input = id;
  shapes_.push_back({1, shape[0], shape[1], shape[2]});
  values_[image->name].node = id;
}

// Nodes that the first output depends on, in file order.
std::vector<const proto::Node*> Importer::live_nodes() const {
  const auto& outputs = file_.graph.outputs;
  if (outputs.size() != 1) {
    throw Error(ErrorCode::unsupported_model, "the network has " + std::to_string(outputs.size()) +
                                                  " outputs; one, the logits, was expected");
  }
  std::set<std::string> needed{outputs[0].name};
  std::vector<const proto::Node*> live;
  for (const proto::Node& node : std::views::reverse(file_.graph.nodes)) {
    const auto used = [&](const std::string& name) { return needed.count(name) > 0; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), used)) continue;
    needed.insert(node.inputs.begin(), node.inputs.end());
    needed.erase("");
    live.push_back(&node);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

void Importer::convert(const proto::Node& node) {
  const auto found = registry().find(node.op_type);
  if (found == registry().end() || !default_domain(node.domain)) {
    const auto type = (default_domain(node.domain) ? "" : node.domain + ".") + node.op_type;
    throw Error(ErrorCode::unsupported_model, "operator " + type + " (node '" + node.name +
                                                  "') is not known. Known: " + known_operators());
  }
  Call call(*this, node);
  const auto& rule = found->second;
  bool constant = true;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (call.has(i) && !call.is_constant(i)) constant = false;
  }
  if (!(constant && rule.fold) && !rule.convert) {
    call.fail("is known on constants (shape arithmetic) only, but an input depends on the image");
  }
  try {
    if (constant && rule.fold) {
      call.bind({-1, rule.fold(call)});
    } else {
      rule.convert(call);
    }
  } catch (const c10::Error& error) {  // ATen was asked for what the tensors do not allow
    throw Error(ErrorCode::bad_input,
                node.op_type + " '" + call.name() + "': " + error.what_without_backtrace());
  }
}

NodeId Importer::output() const {
  const auto& name = file_.graph.outputs[0].name;
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.node < 0 || found->second.quantized) {
    throw Error(ErrorCode::unsupported_model,
                "the output '" + name + "' does not depend on the image as a float tensor");
  }
  const auto& shape = shapes_[static_cast<std::size_t>(found->second.node)];
  if (shape.size() != 2) {
    throw Error(ErrorCode::unsupported_model,
                "the output '" + name + "' has shape " + c10::str(at::IntArrayRef(shape)) +
                    "; a classifier's logits [N, classes] were " + "expected");
  }
  return found->second.node;
}

std::string Importer::unique_name(const std::string& wanted) {
  auto name = wanted;
  for (int i = 2; !node_names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

}  // namespace zsq::models::onnx

namespace zsq::models {

Model import_onnx(const formats::onnx::Model& file, const LoadOptions& options) {
  return onnx::Importer(file, options).run();
}

}  // namespace zsq::models
