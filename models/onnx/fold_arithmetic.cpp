// SPDX-License-Identifier: Apache-2.0
// Element by element on constants. The batch may pass through unchanged (N * 1, N + 0); a result
// that would be calculated from it is refused.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/round.h>
#include <ATen/ops/where.h>

#include <limits>

#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

at::Tensor is_batch(const at::Tensor& x) { return x.eq(kBatch); }

// Codes of weights have narrow types, which the batch does not fit into.
bool may_hold_batch(const at::Tensor& x) {
  return at::isFloatingType(x.scalar_type()) || x.scalar_type() == at::kLong;
}

// Most often to move channels into the dimension of the batch, where a fixed size does not help.
[[noreturn]] void fail_where_batch_is_multiplied(const Call& call) {
  call.fail(std::string("multiplies the batch size") + kExportWithFixedBatch +
            "; but if it moves channels into the dimension of the batch, as x.view(n * c // 2, 2, "
            "h * w) does, keep the two apart: x.view(n, c // 2, 2, h * w)");
}

template <class Function>
at::Tensor combine_two(const Call& call, const at::Tensor& a, const at::Tensor& b,
                       Function function) {
  call.charge_broadcast(a, b);
  auto result = function(a, b);
  if (!may_hold_batch(a) && !may_hold_batch(b)) return result;
  const auto from_batch = is_batch(a).logical_or(is_batch(b));
  if (from_batch.logical_and(result.ne(kBatch)).any().template item<bool>()) {
    if (call.node().op_type == "Mul") fail_where_batch_is_multiplied(call);
    call.fail(std::string("calculates with the batch size") + kExportWithFixedBatch);
  }
  return result;
}

// Of all inputs, from the left.
template <class Function>
at::Tensor combine(const Call& call, Function function) {
  auto result = call.constant(0);
  for (std::size_t i = 1; i < call.inputs(); ++i)
    result = combine_two(call, result, call.constant(i), function);
  return result;
}

// [C] along `axis` of x, or a scalar, in a shape that broadcasts.
at::Tensor along_axis(const Call& call, const at::Tensor& values, const at::Tensor& x) {
  if (values.numel() == 1) return values.reshape({});
  auto axis = call.integer("axis", 1);
  axis += axis < 0 ? x.dim() : 0;
  if (values.dim() != 1 || axis < 0 || axis >= x.dim() || values.numel() != x.size(axis)) {
    call.fail("one scale per tensor or per index of the axis was expected");
  }
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[static_cast<std::size_t>(axis)] = values.numel();
  return values.reshape(shape);
}

}  // namespace

at::Tensor fold_add(const Call& call) {
  return combine(call, [](const auto& a, const auto& b) { return a.add(b); });
}
at::Tensor fold_sub(const Call& call) {
  return combine(call, [](const auto& a, const auto& b) { return a.sub(b); });
}
at::Tensor fold_mul(const Call& call) {
  return combine(call, [](const auto& a, const auto& b) { return a.mul(b); });
}
at::Tensor fold_div(const Call& call) {
  return combine(call, [&](const auto& a, const auto& b) {
    if (at::isFloatingType(a.scalar_type())) return a.div(b);
    if (b.eq(0).any().template item<bool>()) call.fail("divides by zero");
    return a.div(b, "trunc");
  });
}
at::Tensor fold_min(const Call& call) {
  return combine(call, [](const auto& a, const auto& b) { return at::minimum(a, b); });
}
at::Tensor fold_max(const Call& call) {
  return combine(call, [](const auto& a, const auto& b) { return at::maximum(a, b); });
}
at::Tensor fold_equal(const Call& call) {
  call.charge_broadcast(call.constant(0), call.constant(1));
  return call.constant(0).eq(call.constant(1));
}
at::Tensor fold_where(const Call& call) {
  call.charge_broadcast(call.constant(1), call.constant(2));
  const auto shape = at::infer_size(call.constant(1).sizes(), call.constant(2).sizes());
  call.charge_broadcast(call.constant(0), call.constant(1).expand(shape));
  return at::where(call.constant(0).to(at::kBool), call.constant(1), call.constant(2));
}

at::Tensor fold_clip(const Call& call) {
  auto x = call.constant(0);
  if (call.opset() < 11) {
    constexpr double kOpen = std::numeric_limits<float>::max();
    return x.clamp(call.number("min", -kOpen), call.number("max", kOpen));
  }
  if (call.has(1)) {
    call.charge_broadcast(x, call.constant(1));
    x = at::maximum(x, call.constant(1));
  }
  if (call.has(2)) {
    call.charge_broadcast(x, call.constant(2));
    x = at::minimum(x, call.constant(2));
  }
  return x;
}

at::Tensor fold_neg(const Call& call) { return call.constant(0).neg(); }
at::Tensor fold_abs(const Call& call) { return call.constant(0).abs(); }

at::Tensor fold_sum(const Call& call) { return fold_add(call); }
at::Tensor fold_mean(const Call& call) {
  return fold_add(call).div(static_cast<double>(call.inputs()));
}

// q = saturate(round_half_even(x / scale) + zero_point)
at::Tensor fold_quantize_linear(const Call& call) {
  const auto& x = call.constant(0);
  auto codes = x.to(at::kFloat).div(along_axis(call, call.constant(1).to(at::kFloat), x)).round();
  auto type = at::kByte;
  if (call.has(2)) {
    type = call.constant(2).scalar_type();
    codes = codes.add(along_axis(call, call.constant(2).to(at::kFloat), x));
  }
  if (call.has(2) && call.is_four_bit_initializer(2)) return codes.clamp(0, 15).to(at::kByte);
  if (type != at::kByte && type != at::kChar) call.fail("only uint8 and int8 codes are known");
  return (type == at::kByte ? codes.clamp(0, 255) : codes.clamp(-128, 127)).to(type);
}

// x = (q - zero_point) * scale
at::Tensor fold_dequantize_linear(const Call& call) {
  if (call.integer("block_size", 0) != 0) call.fail("blocked scales are not known");
  const auto& codes = call.constant(0);
  auto offsets = codes.to(at::kInt);
  if (call.has(2)) offsets = offsets.sub(along_axis(call, call.constant(2).to(at::kInt), codes));
  return offsets.to(at::kFloat).mul(along_axis(call, call.constant(1).to(at::kFloat), codes));
}

}  // namespace zsq::models::onnx
