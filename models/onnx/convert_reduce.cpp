// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes but the batch, Softmax and LogSoftmax.
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "models/elementwise.h"
#include "models/onnx/converters.h"
#include "models/onnx/reductions.h"

namespace zsq::models::onnx {
namespace {

using Axes = std::vector<std::int64_t>;

// after(kind(before(x)))
struct Form {
  const char* type;
  ReduceKind kind;
  std::optional<Elementwise> before = {}, after = {};
};

const Elementwise kSquare{Function::power, 2}, kRoot{Function::sqrt}, kLog{Function::log},
    kAbs{Function::abs};
const Form kForms[] = {
    {"ReduceL1", ReduceKind::sum, kAbs},
    {"ReduceL2", ReduceKind::sum, kSquare, kRoot},
    {"ReduceLogSum", ReduceKind::sum, {}, kLog},
    {"ReduceMax", ReduceKind::max},
    {"ReduceMean", ReduceKind::mean},
    {"ReduceMin", ReduceKind::min},
    {"ReduceProd", ReduceKind::product},
    {"ReduceSum", ReduceKind::sum},
    {"ReduceSumSquare", ReduceKind::sum, kSquare},
};

const Form& form_of(const Call& call) {
  for (const auto& form : kForms)
    if (call.node().op_type == form.type) return form;
  call.fail("is no known reduction");
}

// None: over nothing. Without axes over all dimensions, unless the node says over nothing.
std::optional<Axes> axes_of(const Call& call, std::size_t dimensions) {
  auto axes = call.integers_of("axes", 1).value_or(Axes{});
  if (!axes.empty()) return axes;
  if (call.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
  axes.resize(dimensions);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// The one axis from `axis` on that is longer than 1; -1: there are several.
std::int64_t only_axis(const Shape& shape, std::int64_t axis) {
  const auto begin = shape.begin() + axis;
  const auto longer = [](std::int64_t size) { return size != 1; };
  if (std::count_if(begin, shape.end(), longer) > 1) return -1;
  const auto found = std::find_if(begin, shape.end(), longer);
  return found == shape.end() ? axis : found - shape.begin();
}

NodeId softmax_node(Call& call, NodeId x, std::int64_t axis, bool of_logarithm) {
  if (!of_logarithm) return call.part(Softmax{axis}, {x});
  const auto y = log_softmax(call, x, axis);
  call.remember_log_softmax(y, {x, axis});
  return y;
}

void emit_softmax(Call& call, bool of_logarithm) {
  const auto x = call.activation(0);
  const Shape shape = call.shape(x);
  const auto dimensions = static_cast<std::int64_t>(shape.size());
  auto axis = call.integer("axis", call.opset() < 13 ? 1 : -1);
  axis += axis < 0 ? dimensions : 0;
  if (axis < 0 || axis >= dimensions) call.fail("the axis is out of range");
  if (axis == 0) call.fail("the batch cannot be the axis");
  const auto one = call.opset() < 13 ? only_axis(shape, axis) : axis;
  if (one >= 0) return call.bind({softmax_node(call, x, one, of_logarithm), {}});
  // Up to opset 12 all dimensions from the axis on are one.
  Axes rows(shape.begin() + 1, shape.begin() + axis);
  rows.push_back(-1);
  const auto flat = call.part(Reshape{rows}, {x});
  const auto y = softmax_node(call, flat, axis, of_logarithm);
  call.emit(Reshape{{shape.begin() + 1, shape.end()}}, {y});
}

}  // namespace

void convert_reduce(Call& call) {
  const auto& form = form_of(call);
  auto x = call.activation(0);
  const auto dimensions = call.shape(x).size();
  const bool keepdims = call.integer("keepdims", 1) != 0;
  const auto axes = axes_of(call, dimensions);
  if (form.before) x = call.part(*form.before, {x});
  if (axes) x = reduce(call, form.kind, x, image_axes(call, *axes, dimensions, keepdims), keepdims);
  if (form.after) x = call.part(*form.after, {x});
  call.bind({x, {}});
}

void convert_reduce_log_sum_exp(Call& call) {
  const auto x = call.activation(0);
  const auto dimensions = call.shape(x).size();
  const bool keepdims = call.integer("keepdims", 1) != 0;
  const auto all = axes_of(call, dimensions);
  if (!all) return call.bind(call.value(0));
  const auto axes = image_axes(call, *all, dimensions, keepdims);
  const auto largest = reduce(call, ReduceKind::max, x, axes, true);
  const auto powers =
      call.part(Elementwise{Function::exp}, {call.part(Binary{BinaryKind::sub}, {x, largest})});
  const auto log =
      call.part(Elementwise{Function::log}, {reduce(call, ReduceKind::sum, powers, axes, true)});
  auto y = call.part(Add{}, {log, largest});
  if (!keepdims) {
    Axes left;
    for (std::size_t i = 1; i < dimensions; ++i)
      if (std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == 0)
        left.push_back(call.shape(x)[i]);
    y = call.part(Reshape{left}, {y});
  }
  call.bind({y, {}});
}

void convert_global_max_pool(Call& call) {
  const auto x = call.activation(0);
  const auto dimensions = static_cast<std::int64_t>(call.shape(x).size());
  if (dimensions < 3) call.fail("needs an input N x C x H x W");
  Axes axes(static_cast<std::size_t>(dimensions - 2));
  std::iota(axes.begin(), axes.end(), 2);
  call.bind({reduce(call, ReduceKind::max, x, axes, true), {}});
}

namespace {

at::Tensor reduced(const Call& call, ReduceKind kind, const at::Tensor& x) {
  auto axes = axes_of(call, static_cast<std::size_t>(x.dim()));
  if (!axes) return x;
  const bool keepdims = call.integer("keepdims", 1) != 0;
  if (x.to(at::kDouble).eq(static_cast<double>(kBatch)).any().item<bool>())
    call.fail(std::string("calculates with the batch size") + kExportWithFixedBatch);
  switch (kind) {
    case ReduceKind::mean:
      return x.to(at::kDouble).mean(*axes, keepdims).to(x.scalar_type());
    case ReduceKind::sum:
      return x.sum(*axes, keepdims).to(x.scalar_type());
    case ReduceKind::max:
      return x.amax(*axes, keepdims);
    case ReduceKind::min:
      return x.amin(*axes, keepdims);
    case ReduceKind::product:
      break;
  }
  for (auto& axis : *axes) axis += axis < 0 ? x.dim() : 0;
  std::sort(axes->rbegin(), axes->rend());
  auto product = x;
  for (const auto axis : *axes) product = product.prod(axis, keepdims);
  return product.to(x.scalar_type());
}

}  // namespace

// Of a constant; a result that the open batch takes part in is refused.
at::Tensor fold_reduce(const Call& call) {
  const auto& form = form_of(call);
  const auto x =
      form.before ? apply(*form.before, call.constant(0).to(at::kFloat)) : call.constant(0);
  const auto y = reduced(call, form.kind, x);
  return form.after ? apply(*form.after, y.to(at::kFloat)) : y;
}

void convert_softmax(Call& call) { emit_softmax(call, false); }
void convert_log_softmax(Call& call) { emit_softmax(call, true); }

}  // namespace zsq::models::onnx
