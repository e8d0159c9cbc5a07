// SPDX-License-Identifier: Apache-2.0
// Normalisations that take their statistics from the image itself.
#include <ATen/ops/full.h>

#include <limits>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

std::string vector_or(const Operation& op, const char* parameter, const Dims& size,
                      double otherwise) {
  if (op.has(parameter)) return op.tensor(parameter);
  double elements = 1;
  for (const auto length : size) elements *= static_cast<double>(length);
  if (!(elements >= 0 && elements <= 1 << 24)) op.fail("makes an implausibly large constant");
  return op.constant(at::full(size, otherwise, at::kFloat));
}

float epsilon(const Operation& op, double otherwise) {
  return static_cast<float>(op.number("eps", otherwise));
}

Dims ones_after(std::size_t dimensions) { return Dims(dimensions > 2 ? dimensions - 2 : 0, 1); }

std::string per_channel(const Operation& op, const char* parameter, std::size_t dimensions) {
  Dims shape{-1};
  for (const auto one : ones_after(dimensions)) shape.push_back(one);
  return op.emit("Reshape", {op.tensor(parameter), op.constant(shape)});
}

std::string instance_normalized(const Operation& op, const std::string& x, std::int64_t channels) {
  const Dims size{channels};
  return op.emit(
      "InstanceNormalization",
      {x, op.constant(at::full(size, 1, at::kFloat)), op.constant(at::full(size, 0, at::kFloat))},
      {{"epsilon", epsilon(op, 1e-5)}});
}

std::string affine(const Operation& op, std::string x, std::size_t dimensions) {
  if (op.has("weight")) x = op.emit("Mul", {x, per_channel(op, "weight", dimensions)});
  if (op.has("bias")) x = op.emit("Add", {x, per_channel(op, "bias", dimensions)});
  return x;
}

}  // namespace

// Over the last dimensions, as many as normalized_shape has.
Value convert_layer_norm(const Operation& op) {
  const auto size = op.integers("normalized_shape");
  if (size.empty()) op.fail("normalized_shape is empty");
  return make_tensor(op.emit(
      "LayerNormalization",
      {op.tensor("input"), vector_or(op, "weight", size, 1), vector_or(op, "bias", size, 0)},
      {{"epsilon", epsilon(op, 1e-5)}, {"axis", -static_cast<std::int64_t>(size.size())}}));
}

Value convert_native_layer_norm(const Operation& op) {
  return make_list({convert_layer_norm(op), {}, {}});
}

Value convert_rms_norm(const Operation& op) {
  const auto size = op.integers("normalized_shape");
  if (size.empty()) op.fail("normalized_shape is empty");
  return make_tensor(op.emit("RMSNormalization",
                             {op.tensor("input"), vector_or(op, "weight", size, 1)},
                             {{"epsilon", epsilon(op, std::numeric_limits<float>::epsilon())},
                              {"axis", -static_cast<std::int64_t>(size.size())}}));
}

// The channels of a group are the places of one channel.
Value convert_group_norm(const Operation& op) {
  const auto shape = op.shape("input");
  const auto groups = op.integer(op.has("num_groups") ? "num_groups" : "group", 1);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
    op.fail("the number of groups must divide the channels");
  std::int64_t places = shape[1] / groups;
  for (std::size_t i = 2; i < shape.size(); ++i) places *= shape[i];
  const auto back = op.constant(shape);
  auto x = op.emit("Reshape", {op.tensor("input"), op.constant({shape[0], groups, places})});
  x = op.emit("Reshape", {instance_normalized(op, x, groups), back});
  return make_tensor(affine(op, x, shape.size()));
}

Value convert_native_group_norm(const Operation& op) {
  return make_list({convert_group_norm(op), {}, {}});
}

Value convert_instance_norm(const Operation& op) {
  if (!op.flag("use_input_stats", true)) return convert_batch_norm(op);
  const auto shape = op.shape("input");
  if (shape.size() < 3) op.fail("needs an input N x C x H x W");
  return make_tensor(
      affine(op, instance_normalized(op, op.tensor("input"), shape[1]), shape.size()));
}

}  // namespace zsq::models::aten
