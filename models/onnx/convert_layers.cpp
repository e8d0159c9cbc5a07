// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"
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

}  // namespace

void convert_conv(Call& call) {
  auto x = call.activation(0);
  const auto& weight = call.constant(1);
  if (weight.dim() != 4) call.fail("only two-dimensional convolutions are known");
  const auto window = read_window(call, x, {weight.size(2), weight.size(3)});
  const auto groups = call.integer("group", 1);
  if (groups < 1 || groups > kMaxExtent) call.fail("attribute 'group' must be positive");
  Conv2d conv{window.stride, window.pads, window.dilation, groups};
  x = absorb_pad(call.model().graph, x, 0, conv.pads);
  emit_layer(call, conv, x, weight, call.has(2) ? call.constant(2) : at::Tensor());
}

void convert_gemm(Call& call) {
  if (call.integer("transA", 0) != 0) call.fail("transA=1 is not known");
  const auto& b = call.constant(1);
  auto weight = call.integer("transB", 0) != 0 ? b : b.t();
  if (const auto alpha = call.number("alpha", 1); alpha != 1) weight = weight.mul(alpha);
  at::Tensor bias;
  if (call.has(2)) {
    const auto classes = weight.size(0);
    const auto& c = call.constant(2);
    if (c.numel() != classes && c.numel() != 1) call.fail("C must hold one value per output");
    bias = c.reshape({-1}).expand({classes});
    if (const auto beta = call.number("beta", 1); beta != 1) bias = bias.mul(beta);
  }
  emit_linear(call, weight, bias);
}

void convert_matmul(Call& call) {
  const auto& weight = call.constant(1);
  if (weight.dim() != 2) call.fail("the second factor must be a matrix");
  emit_linear(call, weight.t(), {});
}

void convert_batch_normalization(Call& call) {
  const auto name = call.layer_name(1);
  if (call.integer("training_mode", 0) != 0) {
    call.model().warnings.push_back("BatchNormalization '" + name +
                                    "' was exported in training mode; its running statistics are "
                                    "used, as in inference");
  }
  std::map<std::string, std::string> params;
  std::size_t input = 1;
  for (const auto* role : {"gamma", "beta", "mean", "variance"}) {
    params[role] = call.parameter(name, role, input, call.constant(input));
    ++input;
  }
  const BatchNorm norm{call.number("epsilon", 1e-5)};
  call.bind({call.append(name, norm, {call.activation(0)}, params), {}});
}

}  // namespace zsq::models::onnx
