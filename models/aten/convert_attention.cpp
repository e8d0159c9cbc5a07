// SPDX-License-Identifier: Apache-2.0
// Products of two tensors, and attention as its parts.
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <numeric>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

// a + value * b
std::string added(const Operation& op, const std::string& a, const std::string& b, double value) {
  return op.emit("Add", {a, value == 1 ? b : op.emit("Mul", {b, op.scalar(value)})});
}

}  // namespace

Value convert_bmm(const Operation& op) {
  return make_tensor(op.emit("MatMul", {op.tensor("self"), op.tensor("mat2")}));
}

// beta self + alpha batch1 batch2
Value convert_baddbmm(const Operation& op) {
  auto product = op.emit("MatMul", {op.tensor("batch1"), op.tensor("batch2")});
  const auto alpha = op.number("alpha", 1), beta = op.number("beta", 1);
  if (alpha != 1) product = op.emit("Mul", {product, op.scalar(alpha)});
  return make_tensor(added(op, product, op.tensor("self"), beta));
}

Value convert_addcmul(const Operation& op) {
  const auto product = op.emit("Mul", {op.operand("tensor1"), op.operand("tensor2")});
  return make_tensor(added(op, op.operand("self"), product, op.number("value", 1)));
}

Value convert_addcdiv(const Operation& op) {
  const auto ratio = op.emit("Div", {op.operand("tensor1"), op.operand("tensor2")});
  return make_tensor(added(op, op.operand("self"), ratio, op.number("value", 1)));
}

// softmax(q k^T scale + mask) v
Value convert_attention(const Operation& op) {
  if (op.flag("is_causal", false) || op.flag("enable_gqa", false))
    op.fail("is_causal and enable_gqa are not known");
  if (op.number("dropout_p", 0) != 0) op.warn("was exported in training mode; it does not drop");
  const auto shape = op.shape("query");
  std::vector<std::int64_t> perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  if (perm.size() < 3) op.fail("needs at least three dimensions");
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const auto keys = op.emit("Transpose", {op.tensor("key")}, {{"perm", perm}});
  const auto scale = op.number("scale", 1 / std::sqrt(static_cast<double>(shape.back())));
  const auto query = op.emit("Mul", {op.tensor("query"), op.scalar(scale)});
  auto scores = op.emit("MatMul", {query, keys});
  if (op.has("attn_mask")) scores = op.emit("Add", {scores, op.tensor("attn_mask")});
  const auto weights = op.emit("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  return make_tensor(op.emit("MatMul", {weights, op.tensor("value")}));
}

Value convert_einsum(const Operation& op) {
  const auto* tensors = op.value("tensors").list();
  if (!tensors) op.fail("a list of tensors was expected");
  std::vector<std::string> inputs;
  for (const auto& tensor : *tensors) inputs.push_back(op.name_of(tensor));
  return make_tensor(op.emit("Einsum", inputs, {{"equation", op.text("equation", "")}}));
}

}  // namespace zsq::models::aten
