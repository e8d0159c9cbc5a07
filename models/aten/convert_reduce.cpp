// SPDX-License-Identifier: Apache-2.0
// Reductions over dimensions of an image, which stay or vanish.
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <numeric>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

Dims axes_of(const Operation& op) {
  const bool other = op.has("dim") && op.value("dim").as<bool>();  // another argument in its place
  const auto axes = other ? Dims{} : op.integers("dim");
  if (axes.empty() && op.is_constant("self")) {
    Dims all(op.shape("self").size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (axes.empty()) op.fail("reduces the batch as well; the dimensions of an image were expected");
  return axes;
}

std::string reduced(const Operation& op, const std::string& type, const std::string& x,
                    bool keepdim) {
  const std::int64_t keep = keepdim ? 1 : 0;
  if (type == "ReduceSum")
    return op.emit(type, {x, op.constant(axes_of(op))}, {{"keepdims", keep}});
  return op.emit(type, {x}, {{"axes", axes_of(op)}, {"keepdims", keep}});
}

Value reduce(const Operation& op, const std::string& type) {
  return make_tensor(reduced(op, type, op.tensor("self"), op.flag("keepdim", false)));
}

// Mean and variance; of n values the variance divides by n - correction.
std::pair<std::string, std::string> moments(const Operation& op) {
  const auto x = op.tensor("self");
  const auto shape = op.shape("self");
  double n = 1;
  for (auto axis : axes_of(op)) {
    axis += axis < 0 ? static_cast<std::int64_t>(shape.size()) : 0;
    if (axis < 1 || axis >= static_cast<std::int64_t>(shape.size()))
      op.fail("the axis is out of range, or is the batch");
    n *= static_cast<double>(shape[static_cast<std::size_t>(axis)]);
  }
  const double correction =
      op.has("unbiased") ? (op.flag("unbiased", true) ? 1 : 0) : op.number("correction", 1);
  if (n - correction <= 0) op.fail("divides by zero: too few values for the correction");
  const bool keepdim = op.flag("keepdim", false);
  const auto difference = op.emit("Sub", {x, reduced(op, "ReduceMean", x, true)});
  const auto squares = op.emit("Pow", {difference, op.scalar(2)});
  auto variance = reduced(op, "ReduceMean", squares, keepdim);
  if (correction != 0) variance = op.emit("Mul", {variance, op.scalar(n / (n - correction))});
  return {reduced(op, "ReduceMean", x, keepdim), variance};
}

}  // namespace

Value convert_mean(const Operation& op) { return reduce(op, "ReduceMean"); }
Value convert_sum(const Operation& op) { return reduce(op, "ReduceSum"); }
Value convert_amax(const Operation& op) { return reduce(op, "ReduceMax"); }
Value convert_amin(const Operation& op) { return reduce(op, "ReduceMin"); }
Value convert_prod(const Operation& op) { return reduce(op, "ReduceProd"); }
Value convert_logsumexp(const Operation& op) { return reduce(op, "ReduceLogSumExp"); }

namespace {

// Of two tensors, or over one dimension, then with places that nobody may read.
Value extremum(const Operation& op, const char* of_two, const char* over) {
  for (const char* second : {"other", "dim"})  // by name, or in the place of the dimension
    if (op.has(second) && op.value(second).tensor())
      return make_tensor(op.emit(of_two, {op.operand("self"), op.operand(second)}));
  if (!op.has("dim")) op.fail("reduces the batch as well; a dimension was expected");
  return make_list({reduce(op, over), {}});
}

}  // namespace

Value convert_max(const Operation& op) { return extremum(op, "Max", "ReduceMax"); }
Value convert_min(const Operation& op) { return extremum(op, "Min", "ReduceMin"); }
Value convert_maximum(const Operation& op) {
  return make_tensor(op.emit("Max", {op.operand("self"), op.operand("other")}));
}
Value convert_minimum(const Operation& op) {
  return make_tensor(op.emit("Min", {op.operand("self"), op.operand("other")}));
}

Value convert_variance(const Operation& op) { return make_tensor(moments(op).second); }
Value convert_deviation(const Operation& op) {
  return make_tensor(op.emit("Sqrt", {moments(op).second}));
}
Value convert_variance_mean(const Operation& op) {
  const auto [mean, variance] = moments(op);
  return make_list({make_tensor(variance), make_tensor(mean)});
}
Value convert_deviation_mean(const Operation& op) {
  const auto [mean, variance] = moments(op);
  return make_list({make_tensor(op.emit("Sqrt", {variance})), make_tensor(mean)});
}

// (sum |x|^p)^(1/p) of p = 1, 2 and infinity.
Value convert_norm(const Operation& op) {
  const auto p = op.number(op.has("ord") ? "ord" : "p", 2);
  if (p == 1) return reduce(op, "ReduceL1");
  if (p == 2) return reduce(op, "ReduceL2");
  if (!std::isinf(p) || p < 0) op.fail("norms of order 1, 2 and infinity are known");
  const auto absolute = op.emit("Abs", {op.tensor("self")});
  return make_tensor(reduced(op, "ReduceMax", absolute, op.flag("keepdim", false)));
}

// g v / |v|, where the norm is over all dimensions but one.
Value convert_weight_norm(const Operation& op) {
  const auto v = op.tensor("v"), g = op.tensor("g");
  std::vector<std::int64_t> axes;
  const auto dimensions = static_cast<std::int64_t>(op.shape("v").size());
  for (std::int64_t i = 0; i < dimensions; ++i)
    if (i != op.integer("dim", 0)) axes.push_back(i);
  const auto norm = op.emit("ReduceL2", {v}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  return make_tensor(op.emit("Mul", {v, op.emit("Div", {g, norm})}));
}

// The product of two tensors over a dimension after each is divided by its norm, at least eps.
Value convert_cosine_similarity(const Operation& op) {
  const std::vector<std::int64_t> axes{op.integer("dim", 1)};
  const auto eps = op.scalar(op.number("eps", 1e-8));
  const auto unit = [&](const char* parameter) {
    const auto x = op.tensor(parameter);
    const auto norm = op.emit("ReduceL2", {x}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
    return op.emit("Div", {x, op.emit("Max", {norm, eps})});
  };
  const auto product = op.emit("Mul", {unit("x1"), unit("x2")});
  return make_tensor(
      op.emit("ReduceSum", {product, op.constant(axes)}, {{"keepdims", std::int64_t{0}}}));
}

}  // namespace zsq::models::aten
