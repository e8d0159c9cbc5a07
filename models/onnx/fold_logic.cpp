// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic and what else exporters calculate shapes with, on constants. The open batch is
// a number that is not known: what would depend on it is refused.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/scalar_tensor.h>

#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

at::Tensor is_batch_size(const at::Tensor& x) {
  return x.to(at::kDouble).eq(static_cast<double>(kBatch));
}

void refuse_batch(const Call& call, const at::Tensor& where) {
  if (where.any().item<bool>())
    call.fail(std::string("calculates with the batch size") + kExportWithFixedBatch);
}

// The two inputs, after checking what their broadcasting costs and that the batch is not in them.
std::pair<at::Tensor, at::Tensor> two(const Call& call) {
  if (call.inputs() != 2) call.fail("two inputs were expected");
  const auto &a = call.constant(0), &b = call.constant(1);
  call.charge_broadcast(a, b);
  return {a, b};
}

}  // namespace

// Whether the batch is more than 0 is known: it is.
at::Tensor fold_compare(const Call& call) {
  const auto [a, b] = two(call);
  const auto known = [](const at::Tensor& batch, const at::Tensor& other) {
    return is_batch_size(batch).logical_and(other.gt(0));
  };
  refuse_batch(call, known(a, b).logical_or(known(b, a)));
  const auto& type = call.node().op_type;
  if (type == "Greater") return a.gt(b);
  if (type == "GreaterOrEqual") return a.ge(b);
  if (type == "Less") return a.lt(b);
  return a.le(b);
}

at::Tensor fold_logical(const Call& call) {
  const auto [a, b] = two(call);
  const auto& type = call.node().op_type;
  if (type == "And") return at::logical_and(a, b);
  if (type == "Or") return at::logical_or(a, b);
  return at::logical_xor(a, b);
}

at::Tensor fold_not(const Call& call) { return call.constant(0).logical_not(); }

// The sign is that of the divisor, or with fmod = 1 that of the dividend.
at::Tensor fold_mod(const Call& call) {
  const auto [a, b] = two(call);
  refuse_batch(call, is_batch_size(a).logical_or(is_batch_size(b)));
  const bool integers = !at::isFloatingType(b.scalar_type());
  if (integers && b.eq(0).any().item<bool>()) call.fail("divides by zero");
  return call.integer("fmod", 0) != 0 ? at::fmod(a, b) : at::remainder(a, b);
}

at::Tensor fold_pow(const Call& call) {
  const auto [a, b] = two(call);
  refuse_batch(call, is_batch_size(a).logical_or(is_batch_size(b)));
  return at::pow(a.to(at::kDouble), b.to(at::kDouble)).to(a.scalar_type());
}

at::Tensor fold_cumulative_sum(const Call& call) {
  auto x = call.constant(0);
  refuse_batch(call, is_batch_size(x));
  auto axis = static_cast<std::int64_t>(call.scalar(1));
  axis += axis < 0 ? x.dim() : 0;
  if (axis < 0 || axis >= x.dim()) call.fail("the axis is out of range");
  const bool reverse = call.integer("reverse", 0) != 0;
  if (reverse) x = x.flip(axis);
  auto sums = at::cumsum(x, axis, x.scalar_type());
  if (call.integer("exclusive", 0) != 0) sums = sums.sub(x);
  return reverse ? sums.flip(axis) : sums;
}

at::Tensor fold_size(const Call& call) {
  return at::scalar_tensor(call.constant(0).numel(), at::kLong);
}

at::Tensor fold_tile(const Call& call) {
  const auto& x = call.constant(0);
  const auto repeats = call.integers(1);
  if (static_cast<std::int64_t>(repeats.size()) != x.dim())
    call.fail("one number of repeats per dimension was expected");
  double elements = static_cast<double>(x.numel());
  for (const auto count : repeats) {
    if (count < 0 || count == kBatch) call.fail("repeats as often as the batch is large");
    elements *= static_cast<double>(count);
  }
  call.charge(elements, x.scalar_type());
  return x.repeat(repeats);
}

at::Tensor fold_matmul(const Call& call) {
  const auto a = call.constant(0).to(at::kFloat), b = call.constant(1).to(at::kFloat);
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0))
    call.fail("two matrices that fit each other were expected");
  call.charge(static_cast<double>(a.size(0)) * static_cast<double>(b.size(1)), at::kFloat);
  return at::matmul(a, b);
}

}  // namespace zsq::models::onnx
