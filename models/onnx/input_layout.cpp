// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/input_layout.h"

#include <algorithm>
#include <set>

namespace zsq::models::onnx {
namespace {

bool to_channels_first(const proto::Node& node) {
  const auto* attribute = node.op_type == "Transpose" ? node.find("perm") : nullptr;
  const auto* perm =
      attribute ? std::get_if<std::vector<std::int64_t>>(&attribute->value) : nullptr;
  return perm && *perm == std::vector<std::int64_t>{0, 3, 1, 2};
}

bool ends_preprocessing(const proto::Node& node) {
  static const std::set<std::string> kLayers{"Conv",        "Gemm",    "MatMul",
                                             "MaxPool",     "Flatten", "Reshape",
                                             "AveragePool", "Shape",   "BatchNormalization"};
  return kLayers.count(node.op_type) > 0 || node.op_type == "Transpose";
}

// A transposition to channels first after nodes that keep the layout.
bool preprocesses_channels_last(const std::vector<const proto::Node*>& live,
                                const std::string& input) {
  std::set<std::string> reached{input};
  for (const auto* node : live) {
    const auto reads = [&](const std::string& name) { return reached.count(name) > 0; };
    if (std::none_of(node->inputs.begin(), node->inputs.end(), reads)) continue;
    if (to_channels_first(*node)) return true;
    if (!ends_preprocessing(*node)) reached.insert(node->outputs.begin(), node->outputs.end());
  }
  return false;
}

// By its attribute or, where it has none, by its weight.
bool has_two_sides(const proto::Node& convolution, const formats::NamedArrays& initializers) {
  if (const auto* attribute = convolution.find("kernel_shape")) {
    const auto* sides = std::get_if<std::vector<std::int64_t>>(&attribute->value);
    return sides && sides->size() == 2;
  }
  return std::ranges::any_of(initializers, [&](const auto& one) {
    return convolution.inputs.size() > 1 && one.first == convolution.inputs[1] &&
           one.second.shape.size() == 4;
  });
}

bool takes_one_image(const std::vector<const proto::Node*>& live,
                     const formats::NamedArrays& initializers, const Shape& shape) {
  return shape.size() == 3 && (shape[0] == 3 || shape[0] == 4) &&
         std::ranges::any_of(live, [&](const proto::Node* node) {
           return node->op_type == "Conv" && has_two_sides(*node, initializers);
         });
}

bool reads_channels_last(const std::vector<const proto::Node*>& live, const std::string& input,
                         const Shape& shape) {
  if (shape.size() != 4) return false;
  bool read = false, only_transposed = true;
  for (const auto* node : live) {
    if (std::count(node->inputs.begin(), node->inputs.end(), input) == 0) continue;
    read = true;
    only_transposed = only_transposed && to_channels_first(*node);
  }
  if (read && only_transposed) return true;
  const auto channels = [](std::int64_t size) { return size == 1 || size == 3 || size == 4; };
  return channels(shape[3]) && !channels(shape[1]) && preprocesses_channels_last(live, input);
}

}  // namespace

InputLayout input_layout(const std::vector<const proto::Node*>& live,
                         const formats::NamedArrays& initializers, const std::string& input,
                         const Shape& shape) {
  if (takes_one_image(live, initializers, shape)) return InputLayout::one_image;
  return reads_channels_last(live, input, shape) ? InputLayout::channels_last
                                                 : InputLayout::channels_first;
}

}  // namespace zsq::models::onnx
