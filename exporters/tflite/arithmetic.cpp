// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/arithmetic.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "core/error.h"
#include "exporters/tflite/layout.h"
#include "models/load.h"

namespace zsq::exporters::tflite {
namespace {

Sizes broadcast(const Builder& builder, TensorId a, TensorId b, const std::string& name) {
  Sizes left = builder.shape(a), right = builder.shape(b);
  if (left.size() < right.size()) std::swap(left, right);
  if (right.size() != left.size() && right.size() > 1)
    throw Error(ErrorCode::unsupported_model,
                "node '" + name + "' combines tensors of " + std::to_string(left.size()) + " and " +
                    std::to_string(right.size()) + " dimensions, whose orders differ in LiteRT");
  const std::size_t offset = left.size() - right.size();
  for (std::size_t d = 0; d < right.size(); ++d)
    left[offset + d] = std::max(left[offset + d], right[d]);
  return left;
}

template <class Options>
TensorId binary(Builder& builder, BuiltinOperator code, std::vector<TensorId> operands,
                const std::string& name, const std::optional<Grid>& grid) {
  Options options;
  options.fused_activation_function = grid ? fused(*grid) : Activation::NONE;
  const Sizes shape = broadcast(builder, operands[0], operands[1], name);
  const TensorId result =
      builder.node(code, options_of(options), operands, name, shape, grid ? grid->kind() : Kind{});
  return grid ? limit(builder, result, *grid, true, name) : result;
}

}  // namespace

TensorId add(Builder& builder, TensorId a, TensorId b, const std::string& name,
             const std::optional<Grid>& grid) {
  return binary<AddOptionsT>(builder, BuiltinOperator::ADD, {a, b}, name, grid);
}

TensorId multiply(Builder& builder, TensorId a, TensorId b, const std::string& name,
                  const std::optional<Grid>& grid) {
  return binary<MulOptionsT>(builder, BuiltinOperator::MUL, {a, b}, name, grid);
}

formats::Array as_stored(const formats::Array& array, std::size_t rank) {
  at::Tensor tensor = models::to_tensor(array);
  while (static_cast<std::size_t>(tensor.dim()) < rank) tensor = tensor.unsqueeze(0);
  return models::to_array(
      tensor.permute(stored_order(static_cast<std::size_t>(tensor.dim()))).contiguous());
}

}  // namespace zsq::exporters::tflite
