// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/operator_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "models/elementwise.h"
#include "models/interpolate.h"
#include "models/normalized.h"
#include "quant/data_free/reduced_rows.h"
#include "quant/data_free/sampled_rows.h"
#include "quant/data_free/sources.h"

namespace zsq::quant {
namespace {

using models::BinaryKind;
using models::Function;
using models::Node;
using models::ParameterStore;
using Inputs = std::vector<at::Tensor>;

constexpr double kLeastOfMeanSquare = 0.01;  // of the root mean square
constexpr double kLargest = 1e15;
constexpr std::int64_t kFewProducts = 4;

at::Tensor finite(const at::Tensor& x) {
  return x.nan_to_num(0, kLargest, -kLargest).clamp(-kLargest, kLargest);
}

// What counts as near 0 for rows, or for a constant.
at::Tensor near_zero(const at::Tensor& x) {
  const auto square =
      x.size(0) == distribution::kNodes ? distribution::mean(x.square()).sqrt() : x.abs().mul(1e-4);
  return square.mul(kLeastOfMeanSquare).clamp_min(1e-6);
}

at::Tensor away_from_zero(const at::Tensor& x) {
  const auto least = near_zero(x);
  return at::where(x.lt(0), x.minimum(-least), x.maximum(least));
}

at::Tensor above_zero(const at::Tensor& x) { return x.maximum(near_zero(x)); }

at::Tensor where_defined(const models::Elementwise& op, const at::Tensor& x) {
  switch (op.function) {
    case Function::log:
      return above_zero(x);
    case Function::sqrt:
      return x.clamp_min(0);
    case Function::reciprocal:
      return away_from_zero(x);
    case Function::power:
      if (op.alpha == std::floor(op.alpha)) return op.alpha < 0 ? away_from_zero(x) : x;
      return op.alpha < 0 ? above_zero(x) : x.clamp_min(0);
    default:
      return x;
  }
}

RowsRule function_rule(const models::Elementwise& op) {
  return [op](const Inputs& in, const ParameterStore&) {
    return distribution::elementwise({in[0]}, [&](const Inputs& x) {
      return finite(models::apply(op, where_defined(op, x[0])));
    });
  };
}

// Of HardSigmoid and HardSwish with a scale per channel.
RowsRule gate_rule(const Node& node) {
  const auto* gate = models::get_if<models::HardSigmoid>(node);
  return [op = gate ? *gate : models::HardSigmoid{}, product = !gate,
          name = node.params.at("scale")](const Inputs& in, const ParameterStore& parameters) {
    return distribution::elementwise({in[0], parameters.at(name)}, [&](const Inputs& x) {
      const auto y = (x[0] * x[1] * op.alpha + op.beta).clamp(0, 1);
      return product ? x[0] * y : y;
    });
  };
}

RowsRule prelu_rule(const Node& node) {
  return [name = node.params.at("slope")](const Inputs& in, const ParameterStore& parameters) {
    return distribution::elementwise({in[0], parameters.at(name)}, [](const Inputs& x) {
      return x[0].clamp_min(0) + x[1] * x[0].clamp_max(0);
    });
  };
}

at::Tensor applied(BinaryKind kind, const at::Tensor& a, const at::Tensor& b) {
  switch (kind) {
    case BinaryKind::sub:
      return a - b;
    case BinaryKind::div:
      return finite(a / b);
    case BinaryKind::maximum:
      return at::maximum(a, b);
    case BinaryKind::minimum:
      return at::minimum(a, b);
    case BinaryKind::power:
      break;
  }
  return finite(a.pow(b));
}

RowsRule binary_rule(BinaryKind kind, bool one_source) {
  return [kind, one_source](const Inputs& in, const ParameterStore&) {
    const auto a = kind == BinaryKind::power ? above_zero(in[0]) : in[0];
    const auto b = kind == BinaryKind::div ? away_from_zero(in[1]) : in[1];
    if (one_source)
      return distribution::elementwise(
          {a, b}, [kind](const Inputs& x) { return applied(kind, x[0], x[1]); });
    if (kind == BinaryKind::sub) return distribution::sum(a, -b);
    return distribution::of_independent(
        a, b, [kind](const at::Tensor& x, const at::Tensor& y) { return applied(kind, x, y); });
  };
}

at::Tensor narrowed(const at::Tensor& x, std::int64_t dimension) {
  return x.stride(dimension) == 0 ? x.narrow(dimension, 0, 1) : x;
}

at::Tensor matmul_rows(at::Tensor a, at::Tensor b, const models::Shape& shape) {
  while (a.dim() < b.dim()) a = a.unsqueeze(1);
  while (b.dim() < a.dim()) b = b.unsqueeze(1);
  const bool places = a.stride(-1) == 0 || b.stride(-2) == 0;
  a = narrowed(a, -2);
  b = narrowed(b, -1);
  if (a.size(-1) < kFewProducts && !places)
    return as_large_as(shape, distribution::sampled({a, b}, [](const Inputs& in) {
                         return at::matmul(in[0], in[1]);
                       }));
  const auto mean_a = distribution::mean(a), mean_b = distribution::mean(b);
  const auto var_a = distribution::variance(a), var_b = distribution::variance(b);
  const auto square_b = var_b + mean_b.square();
  auto variance = at::matmul(var_a, square_b) + at::matmul(mean_a.square(), var_b);
  if (places) {
    const auto together =
        at::matmul(var_a.sqrt(), square_b.sqrt()) + at::matmul(mean_a.abs(), var_b.sqrt());
    variance = variance.mul(1 - kFarCorrelation).add(together.square(), kFarCorrelation);
  }
  return as_large_as(shape, finite(distribution::normal(at::matmul(mean_a, mean_b), variance)));
}

at::Tensor softmax_rows(const at::Tensor& rows, std::int64_t axis, const models::Shape& shape) {
  if (axis < 0) axis += rows.dim();
  auto x = rows;
  for (std::int64_t d = 1; d < x.dim(); ++d)
    if (d != axis) x = narrowed(x, d);
  const bool alike = x.stride(axis) == 0;
  auto y = distribution::sampled(
      {x}, [&](const Inputs& in) { return at::softmax(in[0], axis); }, 0, 1);
  if (alike) y = y.mean(axis, true);
  return as_large_as(shape, y);
}

// Mean over the outputs of an axis of what they add to 1 / (number of values averaged).
double concentration(const models::Interpolate& op, int axis, std::int64_t in) {
  const auto matrix = models::interpolation_matrix(op, axis, in);
  return matrix.square().sum().item<double>() / static_cast<double>(matrix.size(0));
}

at::Tensor interpolate_rows(const models::Interpolate& op, const at::Tensor& rows,
                            const models::Shape& shape) {
  const double q =
      std::min(1.0, concentration(op, 0, rows.size(2)) * concentration(op, 1, rows.size(3)));
  const auto y =
      same_everywhere(rows) ? as_large_as(shape, one_place(rows)) : models::interpolate(op, rows);
  return distribution::shrunk(y, std::sqrt(kNearCorrelation + (1 - kNearCorrelation) * q));
}

at::Tensor pad_rows(const models::Pad& op, const at::Tensor& rows, const models::Shape& shape) {
  if (same_everywhere(rows)) return as_large_as(shape, one_place(rows));
  static constexpr const char* kModes[]{"constant", "reflect", "replicate", "circular"};
  return at::pad(rows, {op.before[3], op.after[3], op.before[2], op.after[2]},
                 kModes[static_cast<std::size_t>(op.mode)]);
}

RowsRule rule_of(const Node& node, bool one_source, const models::Shape& shape) {
  if (const auto* op = models::get_if<models::Elementwise>(node)) return function_rule(*op);
  if (models::is<models::PRelu>(node)) return prelu_rule(node);
  if (node.params.contains("scale")) return gate_rule(node);
  if (const auto* op = models::get_if<models::Binary>(node))
    return binary_rule(op->kind, one_source);
  if (models::is<models::MatMul>(node))
    return [shape](const Inputs& in, const ParameterStore&) {
      return matmul_rows(in[0], in[1], shape);
    };
  if (const auto* op = models::get_if<models::Reduce>(node))
    return [op = *op, shape](const Inputs& in, const ParameterStore&) {
      return as_large_as(shape, finite(reduced_rows(op, in[0])));
    };
  if (const auto* op = models::get_if<models::Softmax>(node))
    return [op = *op, shape](const Inputs& in, const ParameterStore&) {
      return softmax_rows(in[0], op.axis, shape);
    };
  if (const auto* op = models::get_if<models::Interpolate>(node))
    return [op = *op, shape](const Inputs& in, const ParameterStore&) {
      return interpolate_rows(op, in[0], shape);
    };
  if (const auto* op = models::get_if<models::Pad>(node);
      op && op->mode != models::PadMode::constant)
    return [op = *op, shape](const Inputs& in, const ParameterStore&) {
      return pad_rows(op, in[0], shape);
    };
  return nullptr;
}

}  // namespace

RowsRule normalized_rule(const models::Graph& graph, models::NodeId id,
                         const std::vector<models::Shape>& shapes) {
  const auto found = models::find_normalized(graph, id);
  if (!found) return nullptr;
  const auto* reduce = models::get_if<models::Reduce>(graph[found->reduce]);
  const auto powers = graph[found->reduce].inputs[0];
  double largest = 1;
  if (reduce->kind == models::ReduceKind::mean)
    for (const auto axis : reduce->axes)
      largest *= static_cast<double>(shapes[powers][static_cast<std::size_t>(axis)]);
  const auto* function = models::get_if<models::Elementwise>(graph[powers]);
  if (!function || function->function != Function::abs) largest = std::sqrt(largest);
  return [x = found->x, largest, quotient = models::is<models::Binary>(graph[id])](
             const Inputs& in, const ParameterStore&) {
    const Inputs pair{in[x], distribution::mean(in[1 - x])};
    return distribution::elementwise(pair, [&](const Inputs& v) {
      return (quotient ? v[0] / away_from_zero(v[1]) : v[0] * v[1]).clamp(-largest, largest);
    });
  };
}

RowsRule operator_rule(const Node& node, bool one_source, const std::vector<bool>& constants,
                       const models::Shape& shape) {
  auto rule = rule_of(node, one_source, shape);
  const bool any = std::any_of(constants.begin(), constants.end(), [](bool c) { return c; });
  if (!rule || !any || (one_source && models::is<models::Binary>(node))) return rule;
  return [rule, constants](Inputs in, const ParameterStore& parameters) {
    for (std::size_t i = 0; i < in.size(); ++i)
      if (constants[i]) in[i] = constant_rows(in[i]);
    return rule(in, parameters);
  };
}

}  // namespace zsq::quant
