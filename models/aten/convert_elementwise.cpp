// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/scalar_tensor.h>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

Value unary(const Operation& op, const char* type, const Operation::Attributes& attributes = {}) {
  return make_tensor(op.emit(type, {op.tensor("self")}, attributes));
}

Value binary(const Operation& op, const char* type) {
  return make_tensor(op.emit(type, {op.operand("self"), op.operand("other")}));
}

Value clip(const Operation& op, double low, double high) {
  return make_tensor(op.emit("Clip", {op.tensor("self"), op.scalar(low), op.scalar(high)}));
}

// The second operand, times alpha.
std::string scaled_other(const Operation& op) {
  const auto alpha = op.number("alpha", 1);
  if (!op.value("other").tensor() || op.is_constant("other")) {
    if (alpha != 1 && !op.value("other").tensor()) return op.scalar(alpha * op.number("other", 0));
  }
  const auto other = op.operand("other");
  return alpha == 1 ? other : op.emit("Mul", {other, op.scalar(alpha)});
}

}  // namespace

Value convert_relu(const Operation& op) { return unary(op, "Relu"); }
Value convert_relu6(const Operation& op) { return clip(op, 0, 6); }
Value convert_hardtanh(const Operation& op) {
  return clip(op, op.number("min_val", -1), op.number("max_val", 1));
}

// Bounds are numbers, or tensors with a bound per element.
Value convert_clamp(const Operation& op) {
  const auto is_number = [&](const char* bound) {
    return !op.has(bound) || !op.value(bound).tensor() ||
           (op.is_constant(bound) && op.shape(bound).empty());
  };
  if (is_number("min") && is_number("max")) {
    std::vector<std::string> inputs{op.tensor("self"), "", ""};
    if (op.has("min")) inputs[1] = op.scalar(op.number("min", 0));
    if (op.has("max")) inputs[2] = op.scalar(op.number("max", 0));
    return make_tensor(op.emit("Clip", inputs));
  }
  auto x = op.tensor("self");
  if (op.has("min")) x = op.emit("Max", {x, op.operand("min")});
  if (op.has("max")) x = op.emit("Min", {x, op.operand("max")});
  return make_tensor(x);
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
  return make_tensor(op.emit("Add", {op.operand("self"), scaled_other(op)}));
}

Value convert_sub(const Operation& op) {
  return make_tensor(op.emit("Sub", {op.operand("self"), scaled_other(op)}));
}

// other - alpha self
Value convert_rsub(const Operation& op) {
  const auto self = op.emit("Mul", {op.tensor("self"), op.scalar(-op.number("alpha", 1))});
  return make_tensor(op.emit("Add", {self, op.operand("other")}));
}

Value convert_mul(const Operation& op) { return binary(op, "Mul"); }

Value convert_div(const Operation& op) {
  const auto ratio = op.emit("Div", {op.operand("self"), op.operand("other")});
  if (!op.has("rounding_mode")) return make_tensor(ratio);
  const auto mode = op.text("rounding_mode", "");
  if (mode != "floor") op.fail("rounding_mode '" + mode + "' is not known");
  return make_tensor(op.emit("Floor", {ratio}));
}

// self - other floor(self / other)
Value convert_remainder(const Operation& op) {
  const auto self = op.operand("self"), other = op.operand("other");
  const auto floor = op.emit("Floor", {op.emit("Div", {self, other})});
  return make_tensor(op.emit("Sub", {self, op.emit("Mul", {floor, other})}));
}

Value convert_dropout(const Operation& op) {
  if (op.flag("train", false)) op.warn("was exported in training mode; it is left out");
  return op.value("input");
}

Value convert_native_dropout(const Operation& op) { return make_list({convert_dropout(op), {}}); }

// A value of its own: only operators that say so share memory.
Value convert_same(const Operation& op) { return make_tensor(op.tensor("self")); }

// Half, float, double and bfloat16; parameters are kept in float anyway. In one form a device comes
// before the type.
Value convert_to(const Operation& op) {
  const bool device = op.has("dtype") && op.value("dtype").as<std::string>();
  const char* place = device ? "non_blocking" : "dtype";
  const auto* type = op.has(place) ? op.value(place).as<std::int64_t>() : nullptr;
  if (type && *type != 5 && *type != 6 && *type != 7 && *type != 15 && !op.is_constant("self")) {
    op.fail("an activation can be cast to a floating-point type only");
  }
  return make_tensor(op.tensor("self"));
}

}  // namespace zsq::models::aten
