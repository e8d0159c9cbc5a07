// SPDX-License-Identifier: Apache-2.0
// How one node follows the size of the image, told from the same file at several sizes.
#pragma once
#include <optional>

#include "models/execute.h"

namespace zsq::models::onnx {

// The file at one image size.
struct Sample {
  const Model& model;
  std::vector<Shape> shapes;  // index = NodeId
  const Shape& shape(NodeId id) const { return shapes[static_cast<std::size_t>(id)]; }
};

template <class T>
bool is_op(const OpenForm& form) {
  return std::holds_alternative<T>(form.op);
}

// An Input, if the node is the same at every size. Nothing: it differs, and no form of it holds
// for all of them.
std::optional<OpenForm> open_form(const std::vector<Sample>& samples, NodeId id);

}  // namespace zsq::models::onnx
