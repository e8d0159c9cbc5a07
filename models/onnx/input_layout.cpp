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

}  // namespace

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

}  // namespace zsq::models::onnx
