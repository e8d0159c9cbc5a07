// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/layout.h"

#include <algorithm>
#include <numeric>

namespace zsq::exporters::tflite {
namespace {

Sizes inverse(const Sizes& order) {
  Sizes result(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    result[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  return result;
}

bool all_spatial_are_one(const Sizes& stored) {
  return stored.size() < 4 || (stored[1] == 1 && stored[2] == 1);
}

}  // namespace

Sizes stored_order(std::size_t rank) {
  Sizes order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (rank >= 4) std::rotate(order.begin() + 1, order.end() - 2, order.end());
  return order;
}

std::int64_t stored_axis(std::int64_t axis, std::size_t rank) {
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  return inverse(stored_order(rank)).at(static_cast<std::size_t>(axis));
}

Sizes stored_shape(const Sizes& shape) {
  Sizes stored;
  for (const std::int64_t d : stored_order(shape.size()))
    stored.push_back(shape[static_cast<std::size_t>(d)]);
  return stored;
}

TensorId to_student_order(Builder& builder, TensorId x, const std::string& name) {
  const Sizes stored = builder.shape(x);
  const Sizes perm = inverse(stored_order(stored.size()));
  if (stored.size() < 4) return x;
  if (!all_spatial_are_one(stored)) return transpose(builder, x, perm, name + ".channels_first");
  Sizes shape;
  for (const std::int64_t d : perm) shape.push_back(stored[static_cast<std::size_t>(d)]);
  return reshape(builder, x, shape, name + ".channels_first");
}

TensorId to_stored_order(Builder& builder, TensorId x, const std::string& name) {
  const std::size_t rank = builder.shape(x).size();
  return rank < 4 ? x : transpose(builder, x, stored_order(rank), name);
}

TensorId transpose(Builder& builder, TensorId x, const Sizes& perm, const std::string& name) {
  Sizes shape;
  for (const std::int64_t d : perm) shape.push_back(builder.shape(x)[static_cast<std::size_t>(d)]);
  return builder.node(BuiltinOperator::TRANSPOSE, options_of(TransposeOptionsT{}),
                      {x, builder.integers(name + ".perm", perm)}, name, shape, builder.kind(x));
}

TensorId reshape(Builder& builder, TensorId x, const Sizes& shape, const std::string& name) {
  Sizes open = shape;
  if (!open.empty() && open[0] == 1) open[0] = -1;
  ReshapeOptionsT options;
  options.new_shape.assign(open.begin(), open.end());
  return builder.node(BuiltinOperator::RESHAPE, options_of(options),
                      {x, builder.integers(name + ".shape", open)}, name, shape, builder.kind(x));
}

}  // namespace zsq::exporters::tflite
