// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Whether the batch stays the first dimension where a constant meets an activation.
bool keeps_batch(const Shape& constant, const Shape& activation) {
  if (constant.size() == activation.size()) return constant[0] == 1;
  return constant.size() < activation.size();
}

void emit_broadcasting(Call& call, Op op) {
  const std::vector<NodeId> inputs{call.operand(0), call.operand(1)};
  const auto &a = call.shape(inputs[0]), &b = call.shape(inputs[1]);
  const bool fits = call.is_constant(0)   ? keeps_batch(a, b)
                    : call.is_constant(1) ? keeps_batch(b, a)
                                          : a.size() == b.size();
  if (!fits) call.fail("the inputs would broadcast along the batch");
  call.emit(std::move(op), inputs);
}

// x with a constant made from input 1: Sub as Add of the negative, Div as Mul by the inverse.
void emit_with_constant(Call& call, Op op, const at::Tensor& constant) {
  const auto x = call.activation(0);
  if (!keeps_batch(constant.sizes().vec(), call.shape(x))) {
    call.fail("the inputs would broadcast along the batch");
  }
  const auto name = call.unique_name();
  const auto operand = call.append(name + ".operand", Parameter{}, {},
                                   {{"value", call.parameter(name, "operand", 1, constant)}});
  call.bind({call.append(name, std::move(op), {x, operand}), {}});
}

void clip(Call& call, double lo, double hi) {
  if (narrow_quantized(call, lo, hi)) return;
  if (lo == -kInfinity && hi == kInfinity) return call.bind(call.value(0));
  call.emit(Clip{static_cast<float>(lo), static_cast<float>(hi)}, {call.activation(0)});
}

// Min and Max with a constant, on either side.
void clip_by_constant(Call& call, bool upper) {
  if (call.inputs() != 2) call.fail("two inputs were expected");
  if (call.is_constant(0)) call.fail("the constant is expected as the second input");
  const auto bound = call.scalar(1);
  clip(call, upper ? -kInfinity : bound, upper ? bound : kInfinity);
}

}  // namespace

void convert_add(Call& call) {
  if (continue_gelu(call)) return;
  if (absorb_linear_bias(call)) return;
  emit_broadcasting(call, Add{});
}

void convert_sub(Call& call) { emit_with_constant(call, Add{}, call.constant(1).neg()); }

void convert_mul(Call& call) {
  if (continue_gelu(call)) return;
  emit_broadcasting(call, Mul{});
}

void convert_div(Call& call) {
  emit_with_constant(call, Mul{}, call.constant(1).to(at::kFloat).reciprocal());
}

void convert_relu(Call& call) { call.emit(Clip{}, {call.activation(0)}); }

void convert_clip(Call& call) {
  const bool as_inputs = call.opset() >= 11;
  const auto bound = [&](std::size_t input, const char* attribute, double open) {
    if (as_inputs) return call.has(input) ? call.scalar(input) : open;
    return call.number(attribute, open);
  };
  clip(call, bound(1, "min", -kInfinity), bound(2, "max", kInfinity));
}

void convert_min(Call& call) { clip_by_constant(call, true); }
void convert_max(Call& call) { clip_by_constant(call, false); }

void convert_leaky_relu(Call& call) {
  call.emit(LeakyRelu{call.number("alpha", 0.01)}, {call.activation(0)});
}

void convert_sigmoid(Call& call) { call.emit(Sigmoid{}, {call.activation(0)}); }

void convert_hard_sigmoid(Call& call) {
  call.emit(HardSigmoid{call.number("alpha", 0.2), call.number("beta", 0.5)}, {call.activation(0)});
}

void convert_hard_swish(Call& call) { call.emit(HardSwish{}, {call.activation(0)}); }

void convert_softmax(Call& call) {
  const auto x = call.activation(0);
  const auto dimensions = static_cast<std::int64_t>(call.shape(x).size());
  auto axis = call.integer("axis", call.opset() < 13 ? 1 : -1);
  axis += axis < 0 ? dimensions : 0;
  // Up to opset 12 all dimensions from the axis on are one.
  if (axis < 1 || (call.opset() < 13 && axis != dimensions - 1)) call.fail("axis is not known");
  call.emit(Softmax{axis}, {x});
}

void convert_identity(Call& call) { call.bind(call.value(0)); }

void convert_cast(Call& call) {
  const auto to = call.integer("to", 0);
  const bool floating = to == 1 || to == 10 || to == 11 || to == 16;
  if (!floating) call.fail("an activation can be cast to a floating-point type only");
  call.bind(call.value(0));
}

}  // namespace zsq::models::onnx
