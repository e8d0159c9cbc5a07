// SPDX-License-Identifier: Apache-2.0
// Operators of two and more tensors, element by element, and Clip.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>

#include "models/onnx/broadcast.h"
#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void clip(Call& call, double lo, double hi) {
  if (narrow_quantized(call, lo, hi)) return;
  if (lo == -kInfinity && hi == kInfinity) return call.bind(call.value(0));
  emit_function(call, Clip{static_cast<float>(lo), static_cast<float>(hi)}, call.activation(0));
}

void require_two(const Call& call) {
  if (call.inputs() != 2) call.fail("two inputs were expected");
}

// Two operands in the order of the file.
void emit_ordered(Call& call, const Op& op) {
  auto operands = read_operands(call, {0, 1});
  std::sort(operands.all.begin(), operands.all.end(),
            [](const Operand& a, const Operand& b) { return a.input < b.input; });
  emit_operands(call, op, operands);
}

// An activation and a constant made of input 1: Sub as Add of the negative, Div as Mul by the
// inverse.
void emit_with_constant(Call& call, const Op& op, at::Tensor (*make)(const at::Tensor&)) {
  auto operands = read_operands(call, {0, 1});
  operands.all[1].constant = make(operands.all[1].constant.to(at::kFloat));
  emit_operands(call, op, operands);
}

// The inputs that are one number each count as a bound of a Clip, the others as tensors.
void convert_extremum(Call& call, bool upper) {
  double bound = upper ? kInfinity : -kInfinity;
  std::vector<std::size_t> tensors;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    const bool number =
        call.is_constant(i) && call.constant(i).numel() == 1 && call.constant(i).dim() <= 1;
    if (!number) {
      tensors.push_back(i);
      continue;
    }
    bound = upper ? std::min(bound, call.scalar(i)) : std::max(bound, call.scalar(i));
  }
  const double lo = upper ? -kInfinity : bound, hi = upper ? bound : kInfinity;
  if (tensors == std::vector<std::size_t>{0} && narrow_quantized(call, lo, hi)) return;
  emit_operands(call, Binary{upper ? BinaryKind::minimum : BinaryKind::maximum},
                read_operands(call, tensors));
  if (bound == kInfinity || bound == -kInfinity) return;
  const auto x = call.result();
  emit_function(call, Clip{static_cast<float>(lo), static_cast<float>(hi)}, x);
}

}  // namespace

void convert_add(Call& call) {
  require_two(call);
  if (absorb_linear_bias(call)) return;
  emit_operands(call, Add{}, read_operands(call));
}

void convert_sum(Call& call) { emit_operands(call, Add{}, read_operands(call)); }

void convert_mean(Call& call) {
  convert_sum(call);
  if (call.inputs() < 2) return;
  const auto sum = call.result();
  const auto factor = call.made_up(1.0 / static_cast<double>(call.inputs()));
  const auto map = map_before_channels_last(call.model().graph, sum);
  emit_on(call, Mul{}, {map < 0 ? sum : map, factor}, map >= 0);
}

void convert_sub(Call& call) {
  require_two(call);
  if (call.is_constant(1))
    emit_with_constant(call, Add{}, [](const at::Tensor& c) { return c.neg(); });
  else
    emit_ordered(call, Binary{BinaryKind::sub});
}

void convert_mul(Call& call) {
  require_two(call);
  const bool square =
      !call.is_constant(0) && !call.is_constant(1) && call.activation(0) == call.activation(1);
  if (square) return emit_function(call, Elementwise{Function::power, 2}, call.activation(0));
  emit_operands(call, Mul{}, read_operands(call));
}

void convert_div(Call& call) {
  require_two(call);
  if (call.is_constant(1))
    emit_with_constant(call, Mul{}, [](const at::Tensor& c) { return c.reciprocal(); });
  else
    emit_ordered(call, Binary{BinaryKind::div});
}

void convert_pow(Call& call) {
  require_two(call);
  const bool number =
      call.is_constant(1) && call.constant(1).numel() == 1 && call.constant(1).dim() <= 1;
  if (!number) return emit_ordered(call, Binary{BinaryKind::power});
  const auto exponent = call.scalar(1);
  const auto x = call.activation(0);
  if (exponent == 1) return call.bind(call.value(0));
  if (exponent == 0.5) return emit_function(call, Elementwise{Function::sqrt}, x);
  if (exponent == -1) return emit_function(call, Elementwise{Function::reciprocal}, x);
  emit_function(call, Elementwise{Function::power, exponent}, x);
}

void convert_clip(Call& call) {
  const bool as_inputs = call.opset() >= 11;
  const auto bound = [&](std::size_t input, const char* attribute, double open) {
    if (as_inputs) return call.has(input) ? call.scalar(input) : open;
    return call.number(attribute, open);
  };
  clip(call, bound(1, "min", -kInfinity), bound(2, "max", kInfinity));
}

void convert_min(Call& call) { convert_extremum(call, true); }
void convert_max(Call& call) { convert_extremum(call, false); }

// max(x, 0) + slope min(x, 0); one number for all channels is LeakyRelu.
void convert_prelu(Call& call) {
  require_two(call);
  if (!call.is_constant(1)) call.fail("the slope must be a constant");
  auto operands = read_operands(call, {0, 1});
  const auto& slope = operands.all[1].constant;
  const at::Tensor first = slope.reshape({-1}).slice(0, 0, 1);
  if (slope.numel() > 0 && slope.eq(first).all().item<bool>())
    return emit_function(call, LeakyRelu{first.item<double>()}, call.activation(0));
  const auto name = call.unique_name();
  const auto parameter = call.parameter(name, "slope", 1, slope);
  const auto y = call.append(name, PRelu{}, {operands.all[0].node}, {{"slope", parameter}});
  call.bind({y, {}});
  if (operands.on_map)
    call.bind({call.append(name + ".channels_last", Transpose{{0, 2, 3, 1}}, {y}), {}});
}

void convert_identity(Call& call) { call.bind(call.value(0)); }

void convert_cast(Call& call) {
  const auto to = call.integer("to", 0);
  const bool floating = to == 1 || to == 10 || to == 11 || to == 16;
  constexpr std::int64_t kBool = 9;
  if (to == kBool && cast_condition(call)) return;
  if (!floating) call.fail("an activation can be cast to a floating-point type only");
  call.bind(call.value(0));
}

}  // namespace zsq::models::onnx
