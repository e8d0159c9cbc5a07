// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/importer.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/onnx/ending.h"
#include "models/onnx/lifted.h"
#include "models/unused_nodes.h"

namespace zsq::models::onnx {
namespace {

std::string known_operators() {
  std::string list;
  for (const auto& [name, rule] : registry()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string names_of(const std::vector<FileOutput>& outputs) {
  std::string list;
  for (const auto& output : outputs) list += (list.empty() ? "" : ", ") + output.name;
  return list;
}

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

void Importer::add_input(const std::string& name, Shape shape, InputLayout layout) {
  const bool channels_last = layout == InputLayout::channels_last;
  const bool one_image = layout == InputLayout::one_image;
  if (one_image) shape.insert(shape.begin(), 1);
  if (shape.size() != 4 && shape.size() != 3) {
    throw Error(ErrorCode::unsupported_model,
                "the input '" + name + "' has " + std::to_string(shape.size()) +
                    " dimensions; N x C x H x W (or N x C x L of signals) was expected");
  }
  const bool one_dimensional = shape.size() == 3;
  if (one_dimensional) shape.insert(shape.begin() + 2, 1);
  if (channels_last) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  input_name_ = name;
  fixed_batch_ = shape[0];
  auto& image = model_.graph.input_shape;
  model_.graph.signature.open_channels = shape[1] < 1;
  model_.graph.signature.open_height = shape[2] < 1 && !one_image;
  model_.graph.signature.open_width = shape[3] < 1 && !one_image;
  const std::array given{options_.channels, options_.image_size[0], options_.image_size[1]};
  for (std::size_t i = 0; i < 3; ++i) {
    const bool other_is_open = i > 0 && shape[4 - i] < 1 && !one_dimensional;
    if (other_is_open && given[i] > 0 && shape[i + 1] > 0 && given[i] != shape[i + 1])
      throw Error(ErrorCode::usage, "the file fixes " + std::string(i == 1 ? "height " : "width ") +
                                        std::to_string(shape[i + 1]) + ", and " +
                                        std::to_string(given[i]) +
                                        " was asked for: give its own size (--image_size)");
    image[i] = shape[i + 1] < 1 ? given[i] : shape[i + 1];
    if (image[i] > kMaxExtent) {
      throw Error(ErrorCode::bad_input, "an image with a side or with channels of " +
                                            std::to_string(image[i]) + " is not plausible");
    }
    if (image[i] < 1) {
      throw Error(ErrorCode::bad_input,
                  i == 0
                      ? "the file leaves the number of image channels open: give it (--channels)"
                      : "the file leaves height or width open: give the image size (--image_size)");
    }
  }
  const auto id = model_.graph.add({unique_name(name), Input{}, {}});
  model_.graph.input = id;
  shapes_.push_back({1, image[0], image[1], image[2]});
  values_[name].node = id;
  values_[name].lifted = one_image;
  model_.graph.signature.one_image = one_image;
  model_.graph.signature.channels_last = channels_last;
  model_.graph.signature.one_dimensional = one_dimensional;
  if (one_dimensional) {
    values_[name].node = add_node(name + ".signal", Reshape{{image[0], image[2]}}, {id});
    return;
  }
  if (!channels_last) return;
  // The file's name stands for what the file sees.
  const Node last{unique_name(name + ".channels_last"), Transpose{{0, 2, 3, 1}}, {id}};
  shapes_.push_back({1, image[1], image[2], image[0]});
  values_[name].node = model_.graph.add(last);
}

void Importer::stand_in(const std::string& name, Shape shape,
                        std::optional<std::vector<std::int64_t>> order) {
  const auto id = model_.graph.add({unique_name(name), Input{}, {}});
  shapes_.push_back(std::move(shape));
  Value& value = values_[name];
  value.node = id;
  value.permuted = std::move(order);
}

const Value* Importer::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void Importer::convert(const proto::Node& node, bool before_convolution) {
  const auto found = registry().find(node.op_type);
  if (found == registry().end() || !proto::is_default_domain(node.domain)) {
    const auto type =
        (proto::is_default_domain(node.domain) ? "" : node.domain + ".") + node.op_type;
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
      convert_activations(call, rule.convert, before_convolution);
    }
    // A product of a matrix of tokens is one again.
    if (node.op_type == "Gemm" && call.value(0).is_matrix)
      values_[node.outputs.at(0)].is_matrix = true;
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

namespace {

// ONNX means the statistics of the batch, whoever exports so by mistake means those of inference.
std::string training_mode_in_words(const std::vector<std::string>& layers) {
  const bool one = layers.size() == 1;
  return (one ? "BatchNormalization '" + layers[0] + "' was"
              : std::to_string(layers.size()) + " BatchNormalization nodes ('" + layers[0] +
                    "', ...) were") +
         " exported in training mode; " + (one ? "its" : "their") +
         " running statistics are used, as in inference";
}

}  // namespace

Model Importer::finish(const std::vector<FileOutput>& outputs, std::shared_ptr<const Tail> tail) {
  for (const auto& [name, kind] : options_.outputs) {
    const auto has_name = [&](const FileOutput& output) { return output.name == name; };
    if (!name.empty() && std::ranges::none_of(outputs, has_name))
      throw Error(ErrorCode::usage, "the network has no output '" + name +
                                        "' whose meaning could "
                                        "be given (model.output); its outputs: " +
                                        names_of(outputs));
  }
  if (outputs.size() == 1 && is_row(shape(output_node(outputs[0]))))
    set_output(outputs[0]);
  else
    set_outputs(outputs);
  if (!in_training_mode_.empty())
    model_.warnings.insert(model_.warnings.begin(), training_mode_in_words(in_training_mode_));
  auto& graph = model_.graph;
  graph.signature.tail = std::move(tail);
  graph = drop_unused_nodes(graph);
  drop_unused_parameters(model_);
  return std::move(model_);
}

NodeId Importer::add_node(const std::string& name, Op op, std::vector<NodeId> inputs) {
  Node node{unique_name(name), std::move(op), std::move(inputs)};
  std::vector<Shape> of_inputs;
  for (const auto input : node.inputs) of_inputs.push_back(shape(input));
  shapes_.push_back(infer_shape(node, of_inputs, model_.parameters));
  return model_.graph.add(std::move(node));
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
