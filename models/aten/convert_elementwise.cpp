// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/scalar_tensor.h>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

std::string scalar(const Operation& op, double value) {
  return op.constant(at::scalar_tensor(value, at::kFloat));
}

Value unary(const Operation& op, const char* type, const Operation::Attributes& attributes = {}) {
  return make_tensor(op.emit(type, {op.tensor("self")}, attributes));
}

Value binary(const Operation& op, const char* type) {
  return make_tensor(op.emit(type, {op.operand("self"), op.operand("other")}));
}

Value clip(const Operation& op, double low, double high) {
  return make_tensor(op.emit("Clip", {op.tensor("self"), scalar(op, low), scalar(op, high)}));
}

void require_alpha_one(const Operation& op) {
  if (op.number("alpha", 1) != 1) op.fail("alpha other than 1 is not known");
}

}  // namespace

Value convert_relu(const Operation& op) { return unary(op, "Relu"); }
Value convert_relu6(const Operation& op) { return clip(op, 0, 6); }
Value convert_hardtanh(const Operation& op) {
  return clip(op, op.number("min_val", -1), op.number("max_val", 1));
}

Value convert_clamp(const Operation& op) {
  std::vector<std::string> inputs{op.tensor("self"), "", ""};
  if (op.has("min")) inputs[1] = scalar(op, op.number("min", 0));
  if (op.has("max")) inputs[2] = scalar(op, op.number("max", 0));
  return make_tensor(op.emit("Clip", inputs));
}

Value convert_leaky_relu(const Operation& op) {
  return unary(op, "LeakyRelu", {{"alpha", static_cast<float>(op.number("negative_slope", 0.01))}});
}

Value convert_sigmoid(const Operation& op) { return unary(op, "Sigmoid"); }

Value convert_silu(const Operation& op) {
  return make_tensor(op.emit("Mul", {op.tensor("self"), op.emit("Sigmoid", {op.tensor("self")})}));
}

Value convert_hardsigmoid(const Operation& op) {
  return unary(op, "HardSigmoid", {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
}

Value convert_hardswish(const Operation& op) { return unary(op, "HardSwish"); }

Value convert_gelu(const Operation& op) {
  return unary(op, "Gelu", {{"approximate", op.text("approximate", "none")}});
}

Value convert_softmax(const Operation& op) {
  return unary(op, "Softmax", {{"axis", op.integer("dim", -1)}});
}

Value convert_add(const Operation& op) {
  require_alpha_one(op);
  return binary(op, "Add");
}

Value convert_sub(const Operation& op) {
  require_alpha_one(op);
  return binary(op, "Sub");
}

// other - self
Value convert_rsub(const Operation& op) {
  require_alpha_one(op);
  const auto negative = op.emit("Mul", {op.tensor("self"), scalar(op, -1)});
  return make_tensor(op.emit("Add", {negative, op.operand("other")}));
}

Value convert_mul(const Operation& op) { return binary(op, "Mul"); }

Value convert_div(const Operation& op) {
  if (op.has("rounding_mode")) op.fail("rounding is not known");
  return binary(op, "Div");
}

Value convert_dropout(const Operation& op) {
  if (op.flag("train", false)) op.warn("was exported in training mode; it is left out");
  return op.value("input");
}

// A value of its own: only operators that say so share memory.
Value convert_same(const Operation& op) { return make_tensor(op.tensor("self")); }

Value convert_to(const Operation& op) {
  // Half, float, double and bfloat16; parameters are kept in float anyway.
  const auto* type = op.has("dtype") ? op.value("dtype").as<std::int64_t>() : nullptr;
  if (type && *type != 5 && *type != 6 && *type != 7 && *type != 15) {
    op.fail("an activation can be cast to a floating-point type only");
  }
  return make_tensor(op.tensor("self"));
}

}  // namespace zsq::models::aten
