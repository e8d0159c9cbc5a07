// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>

#include "models/onnx/broadcast.h"
#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"
#include "models/onnx/rearrange.h"
#include "models/onnx/window.h"

namespace zsq::models::onnx {
namespace {

// Weight by weight name, and the bias unless the exporter made it up out of zeros.
std::map<std::string, std::string> layer_parameters(Call& call, const std::string& name,
                                                    const at::Tensor& weight,
                                                    const at::Tensor& bias) {
  std::map<std::string, std::string> params;
  params["weight"] = call.parameter(name, "weight", 1, weight);
  const bool made_up = bias.defined() && !call.is_initializer(2) && !bias.any().item<bool>();
  if (bias.defined() && !made_up) params["bias"] = call.parameter(name, "bias", 2, bias);
  return params;
}

void emit_layer(Call& call, Op op, NodeId x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto name = call.layer_name(1);
  const auto params = layer_parameters(call, name, weight, bias);
  call.bind({call.append(name, std::move(op), {x}, params), {}});
}

// At each place of a map [N, H, W, C] a linear layer is a 1x1 convolution.
void emit_linear(Call& call, const at::Tensor& weight, const at::Tensor& bias) {
  const auto x = call.activation(0);
  const auto map = map_before_channels_last(call.model().graph, x);
  if (map < 0) return emit_layer(call, Linear{}, x, weight, bias);
  const auto name = call.layer_name(1);
  const auto params =
      layer_parameters(call, name, weight.reshape({weight.size(0), weight.size(1), 1, 1}), bias);
  emit_on_map(call, name, Conv2d{}, map, params);
}

// C of a Gemm with one value per output: [M], or rows that are all alike.
at::Tensor gemm_bias(const Call& call, std::int64_t outputs) {
  auto c = call.constant(2);
  if (c.dim() == 2) c = without_batch_rows(call, c, 2);
  if (c.dim() > 2 || (c.numel() != outputs && c.numel() != 1))
    call.fail("C must hold one value per output");
  return c.reshape({-1}).expand({outputs});
}

// Two matrices of each image.
void emit_product(Call& call) {
  auto operands = read_operands(call, {0, 1});
  auto &a = operands.all[0], &b = operands.all[1];
  if (a.input > b.input) std::swap(a, b);
  std::vector<NodeId> inputs;
  std::size_t rank = 0;
  for (const auto input : {0, 1}) {
    if (!call.is_constant(input))
      rank = std::max(rank, call.shape(call.activation(input)).size());
  }
  for (auto& operand : operands.all) {
    // The layout of maps is that of elementwise operators.
    if (operand.node >= 0) {
      inputs.push_back(call.activation(operand.input));
      continue;
    }
    auto matrix = call.constant(operand.input);
    if (matrix.dim() < 2) call.fail("a vector as the first factor is not known");
    while (static_cast<std::size_t>(matrix.dim()) < rank) matrix = matrix.unsqueeze(0);
    inputs.push_back(
        call.operand(operand.input, without_batch_rows(call, matrix, rank)));
  }
  if (rank < 3)
    call.fail("multiplies matrices whose rows are the images of the batch with each other");
  call.emit(MatMul{}, inputs);
}

}  // namespace

