// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor, element by element; those that ONNX lacks are written in its parts.
#include <ATen/ops/scalar_tensor.h>

#include <cmath>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

float real(const Operation& op, const char* parameter, double otherwise) {
  return static_cast<float>(op.number(parameter, otherwise));
}

// ATen's names of functions that ONNX has without a setting.
const std::map<std::string, const char*> kPlain{{"abs", "Abs"},
                                                {"ceil", "Ceil"},
                                                {"cos", "Cos"},
                                                {"erf", "Erf"},
                                                {"exp", "Exp"},
                                                {"floor", "Floor"},
                                                {"log", "Log"},
                                                {"mish", "Mish"},
                                                {"neg", "Neg"},
                                                {"negative", "Neg"},
                                                {"reciprocal", "Reciprocal"},
                                                {"round", "Round"},
                                                {"selu", "Selu"},
                                                {"sign", "Sign"},
                                                {"sin", "Sin"},
                                                {"sqrt", "Sqrt"},
                                                {"tanh", "Tanh"}};

}  // namespace

Value convert_function(const Operation& op) {
  const auto found = kPlain.find(op.name());
  if (found == kPlain.end()) op.fail("is no function of one tensor");
  return make_tensor(op.emit(found->second, {op.tensor("self")}));
}

Value convert_rsqrt(const Operation& op) {
  return make_tensor(op.emit("Reciprocal", {op.emit("Sqrt", {op.tensor("self")})}));
}

Value convert_square(const Operation& op) {
  return make_tensor(op.emit("Pow", {op.tensor("self"), op.scalar(2)}));
}

Value convert_expm1(const Operation& op) {
  return make_tensor(op.emit("Sub", {op.emit("Exp", {op.tensor("self")}), op.scalar(1)}));
}

Value convert_exp2(const Operation& op) {
  return make_tensor(op.emit("Pow", {op.scalar(2), op.tensor("self")}));
}

Value convert_log2(const Operation& op) {
  return make_tensor(
      op.emit("Div", {op.emit("Log", {op.tensor("self")}), op.scalar(std::log(2.0))}));
}

Value convert_log1p(const Operation& op) {
  return make_tensor(op.emit("Log", {op.emit("Add", {op.tensor("self"), op.scalar(1)})}));
}

Value convert_pow(const Operation& op) {
  return make_tensor(op.emit("Pow", {op.operand("self"), op.operand("exponent")}));
}

// scale (x > 0 ? x : alpha (e^(x input_scale) - 1))
Value convert_elu(const Operation& op) {
  if (op.number("input_scale", 1) != 1) op.fail("input_scale other than 1 is not known");
  return make_tensor(op.emit("Selu", {op.tensor("self")},
                             {{"alpha", real(op, "alpha", 1)}, {"gamma", real(op, "scale", 1)}}));
}

Value convert_celu(const Operation& op) {
  return make_tensor(op.emit("Celu", {op.tensor("self")}, {{"alpha", real(op, "alpha", 1)}}));
}

// log(1 + e^(beta x)) / beta; beyond the threshold ATen returns x, which is the same in float.
Value convert_softplus(const Operation& op) {
  const auto beta = op.number("beta", 1);
  if (op.number("threshold", 20) < 15) op.fail("a threshold below 15 is not known");
  auto x = op.tensor("self");
  if (beta != 1) x = op.emit("Mul", {x, op.scalar(beta)});
  x = op.emit("Softplus", {x});
  return make_tensor(beta == 1 ? x : op.emit("Div", {x, op.scalar(beta)}));
}

Value convert_log_sigmoid(const Operation& op) {
  const auto x = op.emit("Softplus", {op.emit("Neg", {op.tensor("self")})});
  return make_tensor(op.emit("Neg", {x}));
}

Value convert_log_sigmoid_forward(const Operation& op) {
  return make_list({convert_log_sigmoid(op), {}});
}

// A slope per channel acts on dimension 1.
Value convert_prelu(const Operation& op) {
  const auto rank = op.shape("self").size(), slope = op.shape("weight").size();
  auto weight = op.tensor("weight");
  if (slope == 1 && rank > 2) {
    std::vector<std::int64_t> axes;
    for (std::size_t i = 1; i + 1 < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
    weight = op.emit("Unsqueeze", {weight, op.constant(axes)});
  }
  return make_tensor(op.emit("PRelu", {op.tensor("self"), weight}));
}

// In inference the slope is the mean of its bounds.
Value convert_rrelu(const Operation& op) {
  if (op.flag("training", false)) op.warn("was exported in training mode; its mean slope is used");
  const auto slope = (op.number("lower", 1.0 / 8) + op.number("upper", 1.0 / 3)) / 2;
  return make_tensor(
      op.emit("LeakyRelu", {op.tensor("self")}, {{"alpha", static_cast<float>(slope)}}));
}

// a sigmoid(b) of the two halves.
Value convert_glu(const Operation& op) {
  const auto shape = op.shape("self");
  const auto dim = op.integer("dim", -1);
  const auto axis = dim + (dim < 0 ? static_cast<std::int64_t>(shape.size()) : 0);
  if (axis < 1 || axis >= static_cast<std::int64_t>(shape.size()))
    op.fail("the axis is out of range, or is the batch");
  const auto size = shape[static_cast<std::size_t>(axis)];
  if (size % 2 != 0) op.fail("the two halves differ in size");
  const auto halves =
      op.emit("Split", {op.tensor("self"), op.constant({size / 2, size / 2})}, {{"axis", axis}}, 2);
  return make_tensor(op.emit("Mul", {halves[0], op.emit("Sigmoid", {halves[1]})}));
}

Value convert_log_softmax(const Operation& op) {
  return make_tensor(op.emit("LogSoftmax", {op.tensor("self")}, {{"axis", op.integer("dim", -1)}}));
}

}  // namespace zsq::models::aten
