// SPDX-License-Identifier: Apache-2.0
// What networks calculate of their weights before these meet the image: weight normalisation,
// standardized kernels, merged branches, weights of a sum.
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/softmax.h>

#include <numeric>

#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

at::Tensor floats(const Call& call, std::size_t input) {
  const auto x = call.constant(input).to(at::kFloat);
  if (x.eq(static_cast<float>(kBatch)).any().item<bool>())
    call.fail(std::string("calculates with the batch size") + kExportWithFixedBatch);
  return x;
}

}  // namespace

// Softmax and LogSoftmax; up to opset 12 over all dimensions from the axis on.
at::Tensor fold_softmax(const Call& call) {
  const auto x = floats(call, 0);
  auto axis = call.integer("axis", call.opset() < 13 ? 1 : -1);
  axis += axis < 0 ? x.dim() : 0;
  if (axis < 0 || axis >= x.dim()) call.fail("the axis is out of range");
  const auto rows = call.opset() < 13 ? x.flatten(axis) : x;
  const bool log = call.node().op_type == "LogSoftmax";
  return (log ? at::log_softmax(rows, axis) : at::softmax(rows, axis)).reshape(x.sizes());
}

at::Tensor fold_reduce_log_sum_exp(const Call& call) {
  const auto x = floats(call, 0);
  auto axes = call.integers_of("axes", 1).value_or(std::vector<std::int64_t>{});
  if (axes.empty() && call.integer("noop_with_empty_axes", 0) != 0) return x;
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(x.dim()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return at::logsumexp(x, axes, call.integer("keepdims", 1) != 0);
}

at::Tensor fold_pad(const Call& call) {
  if (call.text("mode", "constant") != "constant" || call.has(3))
    call.fail("of a constant, mode 'constant' is known, and pads of all dimensions");
  const auto& x = call.constant(0);
  const auto pads = call.integers_of("pads", 1).value_or(std::vector<std::int64_t>{});
  const auto dimensions = static_cast<std::size_t>(x.dim());
  if (pads.size() != 2 * dimensions) call.fail("two pads per dimension were expected");
  std::vector<std::int64_t> from_last;
  double elements = 1;
  for (auto i = dimensions; i-- > 0;) {
    for (const auto pad : {pads[i], pads[i + dimensions]}) {
      if (pad < -kMaxExtent || pad > kMaxExtent) call.fail("a pad is implausibly large");
      from_last.push_back(pad);
    }
    elements *=
        static_cast<double>(x.size(static_cast<std::int64_t>(i)) + pads[i] + pads[i + dimensions]);
  }
  call.charge(elements, x.scalar_type());
  return at::constant_pad_nd(x, from_last, call.has(2) ? call.scalar(2) : call.number("value", 0));
}

at::Tensor fold_flatten(const Call& call) {
  const auto& x = call.constant(0);
  auto axis = call.integer("axis", 1);
  axis += axis < 0 ? x.dim() : 0;
  if (axis < 0 || axis > x.dim()) call.fail("the axis is out of range");
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < axis; ++i) rows *= x.size(i);
  return x.reshape({rows, rows == 0 ? 0 : x.numel() / rows});
}

// In training mode with the statistics of the constant itself, as ONNX means it.
at::Tensor fold_batch_normalization(const Call& call) {
  const auto x = floats(call, 0);
  if (x.dim() < 2) call.fail("needs an input N x C x ...");
  std::vector<std::int64_t> axes{0}, shape(static_cast<std::size_t>(x.dim()), 1);
  for (std::int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
  shape[1] = x.size(1);
  const auto vector = [&](std::size_t input) {
    if (call.constant(input).numel() != x.size(1)) call.fail("one number per channel was expected");
    return call.constant(input).to(at::kFloat).reshape(shape);
  };
  const bool training = call.integer("training_mode", 0) != 0;
  const auto mean = training ? x.mean(axes, true) : vector(3);
  const auto variance = training ? (x - mean).square().mean(axes, true) : vector(4);
  const auto scale = vector(1) / (variance + call.number("epsilon", 1e-5)).sqrt();
  return (x - mean) * scale + vector(2);
}

}  // namespace zsq::models::onnx
