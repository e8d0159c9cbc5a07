// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/island_ops.h"

#include <algorithm>
#include <optional>

#include "exporters/tflite/arithmetic.h"
#include "exporters/tflite/layout.h"
#include "models/load.h"

namespace zsq::exporters::tflite {
namespace {

using models::Function;

std::optional<BuiltinOperator> unary(Function function) {
  switch (function) {
    case Function::tanh:
      return BuiltinOperator::TANH;
    case Function::exp:
      return BuiltinOperator::EXP;
    case Function::log:
      return BuiltinOperator::LOG;
    case Function::sqrt:
      return BuiltinOperator::SQRT;
    case Function::abs:
      return BuiltinOperator::ABS;
    case Function::neg:
      return BuiltinOperator::NEG;
    case Function::sin:
      return BuiltinOperator::SIN;
    case Function::cos:
      return BuiltinOperator::COS;
    case Function::floor:
      return BuiltinOperator::FLOOR;
    case Function::ceil:
      return BuiltinOperator::CEIL;
    case Function::round:
      return BuiltinOperator::ROUND;
    default:
      return std::nullopt;
  }
}

BuiltinOperator reduction(models::ReduceKind kind) {
  switch (kind) {
    case models::ReduceKind::mean:
      return BuiltinOperator::MEAN;
    case models::ReduceKind::sum:
      return BuiltinOperator::SUM;
    case models::ReduceKind::max:
      return BuiltinOperator::REDUCE_MAX;
    case models::ReduceKind::min:
      return BuiltinOperator::REDUCE_MIN;
    case models::ReduceKind::product:
      break;
  }
  return BuiltinOperator::REDUCE_PROD;
}

}  // namespace

TensorId IslandOps::each(BuiltinOperator code, std::vector<TensorId> values,
                         const std::string& suffix, BuiltinOptionsUnion options) const {
  return builder.node(code, std::move(options), values, node.name + suffix,
                      stored_shape(out_shape));
}

TensorId IslandOps::number(double value, const char* suffix) const {
  return builder.scalar(node.name + suffix, static_cast<float>(value));
}

// outer (max(x, 0) + alpha (e^(min(x, 0) / inner) - 1))
TensorId IslandOps::exponential(double alpha, double inner, double outer) const {
  const TensorId x = inputs[0];
  const auto below = each(BuiltinOperator::MINIMUM, {x, number(0, ".zero")}, ".below",
                          options_of(MaximumMinimumOptionsT{}));
  const auto scaled = multiply(builder, below, number(1 / inner, ".inner"), node.name + ".scaled");
  const auto power = each(BuiltinOperator::EXP, {scaled}, ".exp");
  const auto shifted = add(builder, power, number(-1, ".minus_one"), node.name + ".shifted");
  const auto left = multiply(builder, shifted, number(alpha, ".alpha"), node.name + ".left");
  const auto sum =
      add(builder, each(BuiltinOperator::RELU, {x}, ".right"), left, node.name + ".sum");
  return multiply(builder, sum, number(outer, ".outer"), node.name);
}

// max(x, 0) + log(1 + e^-|x|), which cannot overflow.
TensorId IslandOps::softplus(const std::string& suffix) const {
  const TensorId x = inputs[0];
  const auto distance = each(BuiltinOperator::ABS, {x}, ".distance");
  const auto power =
      each(BuiltinOperator::EXP, {each(BuiltinOperator::NEG, {distance}, ".negative")}, ".exp");
  const auto sum = add(builder, power, number(1, ".one"), node.name + ".sum");
  return add(builder, each(BuiltinOperator::RELU, {x}, ".right"),
             each(BuiltinOperator::LOG, {sum}, ".log"), node.name + suffix);
}

TensorId IslandOps::write(const models::Elementwise& op) const {
  const TensorId x = inputs[0];
  if (const auto code = unary(op.function)) return each(*code, {x}, "");
  switch (op.function) {
    case Function::elu:
      return exponential(op.alpha, 1, 1);
    case Function::celu:
      return exponential(op.alpha, op.alpha, 1);
    case Function::selu:
      return exponential(op.alpha, 1, op.beta);
    case Function::softplus:
      return softplus("");
    case Function::mish:
      return multiply(builder, x, each(BuiltinOperator::TANH, {softplus(".softplus")}, ".gate"),
                      node.name);
    case Function::gelu_tanh: {
      GeluOptionsT options;
      options.approximate = true;
      return each(BuiltinOperator::GELU, {x}, "", options_of(options));
    }
    case Function::softsign: {
      const auto distance = each(BuiltinOperator::ABS, {x}, ".distance");
      return each(BuiltinOperator::DIV,
                  {x, add(builder, distance, number(1, ".one"), node.name + ".sum")}, "");
    }
    case Function::reciprocal:
      return each(BuiltinOperator::DIV, {number(1, ".one"), x}, "");
    case Function::power:
      return each(BuiltinOperator::POW, {x, number(op.alpha, ".exponent")}, "");
    default:
      throw NoOperator("LiteRT has no operator for " + models::op_name(node.op));
  }
}

TensorId IslandOps::write(const models::PRelu&) const {
  const at::Tensor& slope = parameters.at(node.params.at("slope"));
  const auto array = as_stored(models::to_array(slope.detach().contiguous()), out_shape.size());
  const auto below = each(BuiltinOperator::MINIMUM, {inputs[0], number(0, ".zero")}, ".below",
                          options_of(MaximumMinimumOptionsT{}));
  const auto left =
      multiply(builder, below, builder.constant(node.name + ".slope", array), node.name + ".left");
  return add(builder, each(BuiltinOperator::RELU, {inputs[0]}, ".right"), left, node.name);
}

TensorId IslandOps::write(const models::Binary& op) const {
  if (builder.shape(inputs[0]).size() != builder.shape(inputs[1]).size())
    throw NoOperator("its inputs have different numbers of dimensions");
  switch (op.kind) {
    case models::BinaryKind::sub:
      return each(BuiltinOperator::SUB, inputs, "", options_of(SubOptionsT{}));
    case models::BinaryKind::div:
      return each(BuiltinOperator::DIV, inputs, "");
    case models::BinaryKind::maximum:
      return each(BuiltinOperator::MAXIMUM, inputs, "", options_of(MaximumMinimumOptionsT{}));
    case models::BinaryKind::minimum:
      return each(BuiltinOperator::MINIMUM, inputs, "", options_of(MaximumMinimumOptionsT{}));
    case models::BinaryKind::power:
      break;
  }
  return each(BuiltinOperator::POW, inputs, "");
}

// Without its dimensions a map must not keep one of height and width beside the channels, whose
// order would then change.
TensorId IslandOps::write(const models::Reduce& op) const {
  const Sizes in = builder.shape(inputs[0]);
  Sizes axes;
  for (const auto axis : op.axes) axes.push_back(stored_axis(axis, in.size()));
  std::ranges::sort(axes);
  const bool map = in.size() >= 4, of_channels = std::ranges::find(op.axes, 1) != op.axes.end();
  if (map && !op.keepdims && (in.size() > 4 || (!of_channels && axes.size() == 1)))
    throw NoOperator("a reduction that leaves height or width beside the channels");
  ReducerOptionsT options;
  options.keep_dims = op.keepdims;
  return each(reduction(op.kind), {inputs[0], builder.integers(node.name + ".axes", axes)}, "",
              options_of(options));
}

TensorId file_output(Builder& builder, const models::Signature& signature, TensorId x) {
  using models::OutputFunction;
  const Sizes shape = builder.shape(x);
  const auto function = [&](BuiltinOperator code, BuiltinOptionsUnion options = {}) {
    x = builder.node(code, std::move(options), {x}, "probabilities", shape);
  };
  SoftmaxOptionsT softmax;
  softmax.beta = 1;
  if (signature.function == OutputFunction::softmax)
    function(BuiltinOperator::SOFTMAX, options_of(softmax));
  if (signature.function == OutputFunction::log_softmax) function(BuiltinOperator::LOG_SOFTMAX);
  if (signature.function == OutputFunction::sigmoid) function(BuiltinOperator::LOGISTIC);
  if (signature.output_shape.empty()) return x;
  Sizes sizes{1};
  sizes.insert(sizes.end(), signature.output_shape.begin(), signature.output_shape.end());
  return reshape(builder, x, sizes, "shaped");
}

}  // namespace zsq::exporters::tflite
