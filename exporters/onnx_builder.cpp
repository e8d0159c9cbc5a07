// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx_builder.h"

#include <algorithm>

namespace zsq::exporters {

using formats::Array;
using formats::DType;

std::string OnnxBuilder::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

std::string OnnxBuilder::node(const std::string& op_type, const Values& inputs,
                              const std::string& wanted, Attributes attributes) {
  std::string output = unique(wanted);
  model_.graph.nodes.push_back({.name = output,
                                .op_type = op_type,
                                .domain = "",
                                .inputs = inputs,
                                .outputs = {output},
                                .attributes = std::move(attributes)});
  return output;
}

std::string OnnxBuilder::constant(const std::string& name, Array array) {
  if (constants_.insert(name).second) {
    names_.insert(name);
    model_.graph.initializers.emplace_back(name, std::move(array));
  }
  return name;
}

std::string OnnxBuilder::floats(const std::string& name, const std::vector<float>& values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return constant(name, Array::from<float>(DType::f32, {size}, values));
}

std::string OnnxBuilder::integers(const std::string& name,
                                  const std::vector<std::int64_t>& values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return constant(name, Array::from<std::int64_t>(DType::i64, {size}, values));
}

std::string OnnxBuilder::scalar(const std::string& name, float value) {
  return constant(name, Array::from<float>(DType::f32, {}, {&value, 1}));
}

std::string OnnxBuilder::scalar(const std::string& name, std::uint8_t value) {
  return constant(name, Array::from<std::uint8_t>(DType::u8, {}, {&value, 1}));
}

std::string OnnxBuilder::scalar(const std::string& name, std::int8_t value) {
  return constant(name, Array::from<std::int8_t>(DType::i8, {}, {&value, 1}));
}

void OnnxBuilder::require_opset(std::int64_t opset) {
  model_.opset = std::max(model_.opset, opset);
  if (model_.opset >= 21) model_.ir_version = 10;
}

void OnnxBuilder::rename(const std::string& from, const std::string& to) {
  for (formats::onnx::Node& node : model_.graph.nodes) {
    std::replace(node.inputs.begin(), node.inputs.end(), from, to);
    std::replace(node.outputs.begin(), node.outputs.end(), from, to);
  }
}

}  // namespace zsq::exporters
