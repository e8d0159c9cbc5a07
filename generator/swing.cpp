// SPDX-License-Identifier: Apache-2.0
#include "generator/swing.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>

#include <algorithm>

namespace zsq::generator {
namespace {

// out[i] = x[i + shift] along a dimension, reflected at the border without repeating it.
at::Tensor shifted(const at::Tensor& x, std::int64_t dim, std::int64_t shift) {
  const auto size = x.size(dim);
  shift = std::clamp(shift, 1 - size, size - 1);
  if (shift == 0) return x;
  if (shift > 0) {
    const auto reflected = x.slice(dim, size - 1 - shift, size - 1).flip(dim);
    return at::cat({x.slice(dim, shift), reflected}, dim);
  }
  return at::cat({x.slice(dim, 1, 1 - shift).flip(dim), x.slice(dim, 0, size + shift)}, dim);
}

class Shift : public models::CustomOp {
 public:
  Shift(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {}
  std::string kind() const override { return "shift"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore&) const override {
    return shifted(shifted(inputs[0], 2, rows_), 3, columns_);
  }

 private:
  std::int64_t rows_, columns_;
};

}  // namespace

models::Graph swing(const models::Graph& graph, const at::Generator& stream) {
  const auto draw = [&](std::int64_t stride) {
    return at::randint(1 - stride, stride, {1}, stream, at::kLong).item<std::int64_t>();
  };
  models::Graph result;
  result.input_shape = graph.input_shape;
  result.signature = graph.signature;
  std::vector<models::NodeId> moved;  // by old id
  for (auto node : graph.nodes) {
    for (auto& input : node.inputs) input = moved[static_cast<std::size_t>(input)];
    const auto* conv = models::get_if<models::Conv2d>(node);
    if (conv && (conv->stride[0] > 1 || conv->stride[1] > 1)) {
      const auto rows = draw(conv->stride[0]);
      const auto shift = std::make_shared<Shift>(rows, draw(conv->stride[1]));
      node.inputs[0] = result.add({node.name + ".swing", models::Custom{shift}, {node.inputs[0]}});
    }
    moved.push_back(result.add(std::move(node)));
  }
  result.input = moved[static_cast<std::size_t>(graph.input)];
  result.output = moved[static_cast<std::size_t>(graph.output)];
  return result;
}

}  // namespace zsq::generator
