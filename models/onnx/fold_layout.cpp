// SPDX-License-Identifier: Apache-2.0
// Constants that are made, moved, cut and joined.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

at::ScalarType type_of(const Call& call, std::int64_t code) {
  switch (code) {
    case 1:
      return at::kFloat;
    case 2:
      return at::kByte;
    case 3:
      return at::kChar;
    case 5:
      return at::kShort;
    case 6:
      return at::kInt;
    case 7:
      return at::kLong;
    case 9:
      return at::kBool;
    case 10:
      return at::kHalf;
    case 11:
      return at::kDouble;
    case 16:
      return at::kBFloat16;
    default:
      call.fail("data type " + std::to_string(code) + " is not known");
  }
}

std::int64_t from_front(const Call& call, std::int64_t axis, std::int64_t dimensions) {
  axis += axis < 0 ? dimensions : 0;
  if (axis < 0 || axis >= dimensions) call.fail("an axis is out of range");
  return axis;
}

// A constant with values for each image has them alike: it is kept for one, which broadcasts.
Dims of_one_image(Dims shape) {
  if (shape.size() > 1 && shape[0] == kBatch) shape[0] = 1;
  return shape;
}

// A shape read from a constant must not be made of the open batch. What it makes counts before it
// is made; small constants are free.
Dims known_shape(const Call& call, Dims dims, at::ScalarType type) {
  if (std::count(dims.begin(), dims.end(), kBatch) > 0) {
    call.fail("makes a constant whose size is the batch, which is open");
  }
  double elements = 1;
  for (const auto size : dims) elements *= static_cast<double>(size);
  call.charge(std::max(elements, 0.0), type);
  return dims;
}

}  // namespace

at::Tensor fold_constant(const Call& call) {
  if (const auto value = call.tensor("value")) return *value;
  if (const auto list = call.integers("value_ints")) return at::tensor(*list, at::kLong);
  if (call.node().find("value_int"))
    return at::scalar_tensor(call.integer("value_int", 0), at::kLong);
  if (call.node().find("value_float"))
    return at::scalar_tensor(call.number("value_float", 0), at::kFloat);
  if (const auto list = call.numbers("value_floats")) return at::tensor(*list, at::kFloat);
  call.fail("holds no tensor and no numbers");
}

at::Tensor fold_constant_of_shape(const Call& call) {
  const auto value = call.tensor("value");
  const auto type = value ? value->scalar_type() : at::kFloat;
  const auto shape = known_shape(call, of_one_image(call.integers(0)), type);
  return value ? value->reshape({}).expand(shape).contiguous() : at::zeros(shape, at::kFloat);
}

// Numbers from start up to limit, by delta.
at::Tensor fold_range(const Call& call) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (call.constant(i).numel() != 1) call.fail("start, limit and delta are not one number each");
    if (call.constant(i).item<double>() == static_cast<double>(kBatch))
      call.fail(std::string("counts up to the batch size") + kExportWithFixedBatch);
  }
  const auto number = [&](std::size_t i) { return call.constant(i).item<double>(); };
  const double count = std::ceil((number(1) - number(0)) / number(2));
  if (!std::isfinite(count)) call.fail("never comes to its end");
  const auto steps = static_cast<std::int64_t>(std::clamp(count, 0.0, 1e18));
  const Dims shape = known_shape(call, {steps}, call.constant(0).scalar_type());
  return at::arange(shape[0], call.constant(0).options())
      .mul(call.constant(2).reshape({}))
      .add(call.constant(0).reshape({}));
}

at::Tensor fold_identity(const Call& call) { return call.constant(0); }

// Sizes with the batch among them keep their type, because narrower ones have no room for its
// number.
at::Tensor fold_cast(const Call& call) {
  const auto& x = call.constant(0);
  const auto type = type_of(call, call.integer("to", 0));
  const bool has_batch = x.scalar_type() == at::kLong && x.eq(kBatch).any().item<bool>();
  return has_batch && at::isIntegralType(type, /*includeBool=*/false) ? x : x.to(type);
}

void convert_cast_like(Call& call) {
  if (!call.is_constant(0)) return call.bind(call.value(0));
  const auto type = call.is_constant(1) ? call.constant(1).scalar_type() : at::kFloat;
  call.bind({-1, call.constant(0).to(type)});
}

at::Tensor fold_gather(const Call& call) {
  const auto &data = call.constant(0), &indices = call.constant(1);
  const auto axis = from_front(call, call.integer("axis", 0), data.dim());
  auto flat = indices.to(at::kLong).reshape({-1});
  flat = flat.where(flat.ge(0), flat.add(data.size(axis)));
  if (flat.lt(0).logical_or(flat.ge(data.size(axis))).any().item<bool>()) {
    call.fail("an index is out of range");
  }
  const auto slice = data.size(axis) > 0 ? data.numel() / data.size(axis) : 0;
  call.charge(static_cast<double>(slice) * static_cast<double>(flat.numel()), data.scalar_type());
  auto shape = data.sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.sizes().begin(), indices.sizes().end());
  return data.index_select(axis, flat).reshape(shape);
}

at::Tensor fold_unsqueeze(const Call& call) {
  auto axes = call.integers_of("axes", 1).value_or(Dims{});
  auto result = call.constant(0);
  const auto dimensions = result.dim() + static_cast<std::int64_t>(axes.size());
  for (auto& axis : axes) axis = from_front(call, axis, dimensions);
  std::sort(axes.begin(), axes.end());
  for (const auto axis : axes) result = result.unsqueeze(axis);
  return result;
}

at::Tensor fold_squeeze(const Call& call) {
  const auto& x = call.constant(0);
  auto axes = call.integers_of("axes", 1);
  if (!axes) return x.squeeze();
  for (auto& axis : *axes) axis = from_front(call, axis, x.dim());
  return x.squeeze(*axes);
}

at::Tensor fold_concat(const Call& call) {
  const auto axis = from_front(call, call.integer("axis", 0), call.constant(0).dim());
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    parts.push_back(call.constant(i));
    call.charge(static_cast<double>(parts.back().numel()), parts.back().scalar_type());
  }
  return at::cat(parts, axis);
}

at::Tensor fold_reshape(const Call& call) {
  const auto& x = call.constant(0);
  auto shape = known_shape(call, call.integers(1), x.scalar_type());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool copied = shape[i] == 0 && call.integer("allowzero", 0) == 0;
    if (copied) shape[i] = x.size(static_cast<std::int64_t>(i));
  }
  return x.reshape(shape);
}

at::Tensor fold_transpose(const Call& call) {
  const auto& x = call.constant(0);
  Dims reversed(static_cast<std::size_t>(x.dim()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return x.permute(call.integers("perm").value_or(reversed));
}

at::Tensor fold_expand(const Call& call) {
  const auto& x = call.constant(0);
  auto shape = known_shape(call, of_one_image(call.integers(1)), x.scalar_type());
  // Broadcasting both ways: a 1 in the asked shape leaves the dimension as it is.
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto from = x.dim() - static_cast<std::int64_t>(shape.size() - i);
    if (from >= 0 && shape[i] == 1) shape[i] = x.size(from);
  }
  return x.expand(shape);
}

}  // namespace zsq::models::onnx
