// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/importer.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "models/onnx/ending.h"
#include "models/recognize_functions.h"
#include "models/unused_nodes.h"

namespace zsq::models::onnx {
namespace {

std::string known_operators() {
  std::string list;
  for (const auto& [name, rule] : registry()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::int64_t numel(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

}  // namespace

Importer::Importer(std::int64_t opset, const LoadOptions& options)
    : opset_(opset), options_(options) {}

void Importer::add_initializer(const std::string& name, at::Tensor value, bool has_four_bits) {
  if (has_four_bits) four_bit_initializers_.insert(name);
  initializer_bytes_ += static_cast<double>(value.nbytes());
  values_[name].constant = std::move(value);
  initializers_.insert(name);
}

void Importer::charge(double bytes) {
  made_bytes_ += bytes;
  if (made_bytes_ > kFreeConstantBytes + kMaxConstantCopies * initializer_bytes_) {
    throw Error(ErrorCode::bad_input,
                "uses its weights too often, or makes constants that are far larger than these");
  }
}

void Importer::add_input(const std::string& name, Shape shape, bool channels_last) {
  if (shape.size() != 4) {
    throw Error(ErrorCode::unsupported_model, "the input '" + name + "' has " +
                                                  std::to_string(shape.size()) +
                                                  " dimensions; N x C x H x W was expected");
  }
  if (channels_last) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  fixed_batch_ = shape[0];
  auto& image = model_.graph.input_shape;
  for (std::size_t i = 0; i < 3; ++i) {
    image[i] = shape[i + 1];
    if (image[i] < 1 && i > 0) image[i] = options_.image_size[i - 1];
    if (image[i] > kMaxExtent) {
      throw Error(ErrorCode::bad_input, "an image with a side or with channels of " +
                                            std::to_string(image[i]) + " is not plausible");
    }
    if (image[i] < 1) {
      throw Error(ErrorCode::bad_input,
                  i == 0
                      ? "the file leaves the number of image channels open"
                      : "the file leaves height or width open: give the image size (--image_size)");
    }
  }
  const auto id = model_.graph.add({unique_name(name), Input{}, {}});
  model_.graph.input = id;
  shapes_.push_back({1, image[0], image[1], image[2]});
  values_[name].node = id;
  model_.graph.signature.channels_last = channels_last;
  if (!channels_last) return;
  // The file's name stands for what the file sees.
  const Node last{unique_name(name + ".channels_last"), Transpose{{0, 2, 3, 1}}, {id}};
  shapes_.push_back({1, image[1], image[2], image[0]});
  values_[name].node = model_.graph.add(last);
}

const Value* Importer::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
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
      auto value = rule.fold(call);
      // Some files hold their weights as such nodes.
      if (node.op_type == "Constant") initializer_bytes_ += static_cast<double>(value.nbytes());
      call.bind({-1, std::move(value)});
    } else {
      rule.convert(call);
    }
  } catch (const c10::Error&) {  // ATen was asked for what the tensors do not allow
    throw Error(ErrorCode::bad_input, node.op_type + " '" + call.name() +
                                          "': its inputs do not fit together (" +
                                          describe_inputs(node) + ")");
  }
}

std::string Importer::describe_inputs(const proto::Node& node) const {
  std::string text;
  for (const auto& name : node.inputs) {
    const auto* value = find(name);
    if (!value) continue;
    text += (text.empty() ? "'" : ", '") + name + "'";
    if (value->constant.defined())
      text += " is a constant of shape " + c10::str(value->constant.sizes());
    else if (value->node >= 0)
      text += " has shape " + c10::str(at::IntArrayRef(shape(value->node)));
  }
  return text.empty() ? "it has none" : text;
}

Model Importer::finish(const std::string& output) {
  set_output(output_node(output), output);
  auto& graph = model_.graph;
  graph = drop_unused_nodes(graph);
  drop_unused_parameters(model_);
  return std::move(model_);
}

NodeId Importer::output_node(const std::string& output) const {
  const auto* found = find(output);
  if (!found || found->node < 0 || found->quantized) {
    throw Error(ErrorCode::unsupported_model,
                "the output '" + output + "' does not depend on the image as a float tensor");
  }
  const auto& dims = shape(found->node);
  const auto longer = std::count_if(dims.begin(), dims.end(), [](auto size) { return size != 1; });
  if (longer > 1) {
    throw Error(ErrorCode::unsupported_model,
                "the output '" + output + "' has shape " + c10::str(at::IntArrayRef(dims)) +
                    "; one row of numbers per image, as a classifier's logits [N, classes], was "
                    "expected");
  }
  return found->node;
}

void Importer::set_output(NodeId output, const std::string& name) {
  auto& graph = model_.graph;
  const Shape shape_in_file = shape(output);
  graph.output = output;
  recognize_functions(model_);
  const auto ending = find_ending(graph, shapes_, log_softmaxes_, output);
  graph.output = ending.node;
  if (shape(graph.output).size() != 2) {
    Op flat = Flatten{};
    if (shape(graph.output).size() < 2) flat = Reshape{{1}};
    const auto classes = numel(shape(graph.output));
    graph.output = graph.add({unique_name(name + ".classes"), std::move(flat), {graph.output}});
    shapes_.push_back({1, classes});
  }
  model_.classes = shape(graph.output)[1];
  graph.signature.function = ending.function;
  graph.signature.kind = options_.output.value_or(ending.kind);
  if (shape_in_file.size() > 2)
    graph.signature.output_shape.assign(shape_in_file.begin() + 1, shape_in_file.end());
}

// With a number if `wanted` is taken. Numbers are given in order, so the next one can be searched
// by bisection: thousands of nodes may want the same name.
std::string Importer::unique_name(const std::string& wanted) {
  if (node_names_.insert(wanted).second) return wanted;
  const auto numbered = [&](int number) { return wanted + "_" + std::to_string(number); };
  const auto taken = [&](int number) { return node_names_.count(numbered(number)) > 0; };
  int low = 1, high = 2;
  for (; taken(high); high *= 2) low = high;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (taken(middle) ? low : high) = middle;
  }
  return *node_names_.insert(numbered(high)).first;
}

}  // namespace zsq::models::onnx
