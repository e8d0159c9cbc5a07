// SPDX-License-Identifier: Apache-2.0
// Comparisons, what is chosen by them, and functions that are defined so.
#include <cmath>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

const std::map<std::string, const char*> kOfTwo{{"__and__", "And"},
                                                {"__or__", "Or"},
                                                {"bitwise_and", "And"},
                                                {"bitwise_or", "Or"},
                                                {"ge", "GreaterOrEqual"},
                                                {"greater", "Greater"},
                                                {"greater_equal", "GreaterOrEqual"},
                                                {"gt", "Greater"},
                                                {"le", "LessOrEqual"},
                                                {"less", "Less"},
                                                {"less_equal", "LessOrEqual"},
                                                {"logical_and", "And"},
                                                {"logical_or", "Or"},
                                                {"lt", "Less"}};

Value where(const Operation& op, const std::string& condition, const std::string& a,
            const std::string& b) {
  return make_tensor(op.emit("Where", {condition, a, b}));
}

}  // namespace

Value convert_compare(const Operation& op) {
  const auto found = kOfTwo.find(op.name());
  if (found == kOfTwo.end()) op.fail("is no comparison");
  return make_tensor(op.emit(found->second, {op.operand("self"), op.operand("other")}));
}

Value convert_not(const Operation& op) { return make_tensor(op.emit("Not", {op.tensor("self")})); }

Value convert_where(const Operation& op) {
  return where(op, op.tensor("condition"), op.operand("self"), op.operand("other"));
}

Value convert_masked_fill(const Operation& op) {
  return where(op, op.tensor("mask"), op.operand("value"), op.tensor("self"));
}

// self + weight (end - self)
Value convert_lerp(const Operation& op) {
  const auto difference = op.emit("Sub", {op.tensor("end"), op.tensor("self")});
  const auto step = op.emit("Mul", {difference, op.operand("weight")});
  return make_tensor(op.emit("Add", {op.tensor("self"), step}));
}

// x > threshold: x, else a value
Value convert_threshold(const Operation& op) {
  const auto x = op.tensor("self");
  const auto threshold = op.number("threshold", 0), value = op.number("value", 0);
  if (value == 0)
    return make_tensor(op.emit("ThresholdedRelu", {x}, {{"alpha", static_cast<float>(threshold)}}));
  return where(op, op.emit("Greater", {x, op.scalar(threshold)}), x, op.scalar(value));
}

// |x| > lambda: x, else 0
Value convert_hardshrink(const Operation& op) {
  const auto x = op.tensor("self");
  const auto lambda = op.scalar(op.number("lambd", 0.5));
  return make_tensor(op.emit("Mul", {x, op.emit("Greater", {op.emit("Abs", {x}), lambda})}));
}

// x moved by lambda towards 0, and 0 between
Value convert_softshrink(const Operation& op) {
  const auto x = op.tensor("self");
  const auto lambda = op.scalar(op.number("lambd", 0.5));
  const auto above = op.emit("Relu", {op.emit("Sub", {x, lambda})});
  const auto below = op.emit("Relu", {op.emit("Sub", {op.emit("Neg", {x}), lambda})});
  return make_tensor(op.emit("Sub", {above, below}));
}

}  // namespace zsq::models::aten
