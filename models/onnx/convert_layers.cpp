// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "models/onnx/broadcast.h"
#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"
#include "models/onnx/expectation.h"
#include "models/onnx/rearrange.h"
#include "models/onnx/window.h"

namespace zsq::models::onnx {
namespace {

// PyTorch's exporter by torch.export folds a BatchNorm into a convolution with a bias under that
// bias's own name. Only the name of the node tells ("node_Conv_50", an untouched one is
// "node_conv2d_2"), and a layer gets that of its module here. Its bias therefore gets the name that
// the exporter makes up where there was none (models/batch_norm.cpp).
bool has_dynamo_fold(Call& call, const std::string& weight) {
  return call.name().starts_with("node_Conv_") && weight.ends_with(".weight") &&
         !call.model().parameters.contains(weight + "_bias");
}

std::string bias_of_fold(Call& call, const std::string& weight, const at::Tensor& bias) {
  auto name = weight + "_bias";
  call.charge(static_cast<double>(bias.numel()), at::kFloat);
  call.model().parameters.set(name, bias.to(at::kFloat).clone(at::MemoryFormat::Contiguous));
  return name;
}

// Weight by weight name, and the bias unless the exporter made it up out of zeros.
std::map<std::string, std::string> layer_parameters(Call& call, const std::string& name,
                                                    const at::Tensor& weight,
                                                    const at::Tensor& bias) {
  std::map<std::string, std::string> params;
  params["weight"] = call.parameter(name, "weight", 1, weight);
  const bool made_up = bias.defined() && !call.is_initializer(2) && !bias.any().item<bool>();
  if (!bias.defined() || made_up) return params;
  if (has_dynamo_fold(call, params["weight"]))
    params["bias"] = bias_of_fold(call, params["weight"], bias);
  else
    params["bias"] = call.parameter(name, "bias", 2, bias);
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
  auto operands = read_operands(call, {0, 1}, false);
  std::size_t rank = 0;
  for (const auto& operand : operands.all)
    if (operand.node >= 0) rank = std::max(rank, call.shape(operand.node).size());
  if (rank < 3)
    call.fail(
        "multiplies matrices whose rows are the images of the batch; two matrices of each "
        "image, or a constant, were expected");
  std::vector<NodeId> inputs(2);
  for (auto& operand : operands.all) {
    auto& matrix = operand.constant;
    if (operand.node < 0 && matrix.dim() < 2) call.fail("a vector as a factor is not known here");
    while (operand.node < 0 && static_cast<std::size_t>(matrix.dim()) < rank)
      matrix = matrix.unsqueeze(0);
    inputs[operand.input] = node_of(call, operand);
  }
  call.emit(MatMul{}, inputs);
}

// x [..., K] times a vector [K].
void emit_vector_product(Call& call) {
  const auto x = call.activation(0);
  const auto last = static_cast<std::int64_t>(call.shape(x).size()) - 1;
  if (last > 0 && emit_expectation(call, x, call.constant(1), last, false)) return;
  const auto name = call.layer_name(1);
  const auto params = layer_parameters(call, name, call.constant(1).unsqueeze(0), {});
  const auto y = call.append(name, Linear{}, {x}, params);
  const auto& shape = call.shape(y);
  call.emit(Reshape{{shape.begin() + 1, shape.end() - 1}}, {y});
}

// Two numbers per axis of a window along one axis, as of a map of height 1.
Conv2d along_one_axis(const Call& call, std::int64_t kernel, std::int64_t size) {
  const auto one = [&](const char* attribute) {
    const auto list = call.integers(attribute).value_or(std::vector<std::int64_t>{1});
    if (list.size() != 1 || list[0] < 1 || list[0] > kMaxExtent)
      call.fail(std::string("attribute '") + attribute + "' must hold one positive number");
    return list[0];
  };
  Conv2d conv;
  conv.stride[1] = one("strides");
  conv.dilation[1] = one("dilations");
  const auto mode = call.text("auto_pad", "NOTSET");
  const auto pads = call.integers("pads").value_or(std::vector<std::int64_t>{0, 0});
  if (pads.size() != 2 || std::min(pads[0], pads[1]) < 0 || std::max(pads[0], pads[1]) > kMaxExtent)
    call.fail("attribute 'pads' must hold two numbers, none negative");
  if (mode == "NOTSET") {
    conv.pads = {0, pads[0], 0, pads[1]};
  } else if (mode != "VALID") {
    const auto extent = (kernel - 1) * conv.dilation[1] + 1;
    const auto outputs = (size + conv.stride[1] - 1) / conv.stride[1];
    const auto total = std::max<std::int64_t>(0, (outputs - 1) * conv.stride[1] + extent - size);
    const auto less = total / 2;
    conv.pads =
        mode == "SAME_UPPER" ? Pads{0, less, 0, total - less} : Pads{0, total - less, 0, less};
  }
  return conv;
}

std::int64_t groups_of(const Call& call) {
  const auto groups = call.integer("group", 1);
  if (groups < 1 || groups > kMaxExtent) call.fail("attribute 'group' must be positive");
  return groups;
}

// Along the one axis of [N, C, L]: a convolution of a map [N, C, 1, L].
void convert_conv1d(Call& call) {
  const auto x = call.activation(0);
  const auto shape = call.shape(x);
  const auto weight = call.constant(1).unsqueeze(2);
  if (shape.size() != 3) call.fail("needs an input N x C x L");
  auto conv = along_one_axis(call, weight.size(3), shape[2]);
  conv.groups = groups_of(call);
  const auto map = absorb_pad(call.model().graph, call.part(Reshape{{shape[1], 1, shape[2]}}, {x}),
                              0, conv.pads);
  const auto name = call.layer_name(1);
  const auto params =
      layer_parameters(call, name, weight, call.has(2) ? call.constant(2) : at::Tensor());
  const auto y = call.append(name, conv, {map}, params);
  const auto& out = call.shape(y);
  call.emit(Reshape{{out[1], out[3]}}, {y});
}

}  // namespace

void convert_conv(Call& call) {
  const auto& weight = call.constant(1);
  if (weight.dim() == 3) return convert_conv1d(call);
  auto x = call.activation(0);
  if (weight.dim() != 4) call.fail("only convolutions over one or two dimensions are known");
  const auto window = read_window(call, x, {weight.size(2), weight.size(3)});
  Conv2d conv{window.stride, window.pads, window.dilation, groups_of(call)};
  const bool one_sum = weight.size(0) == 1 && weight[0][0].numel() == 1 && !call.has(2);
  if (one_sum && conv.groups == 1 && call.shape(x)[1] > 1 && conv.stride == Pair{1, 1} &&
      conv.pads == Pads{} && emit_expectation(call, x, weight[0], 1, true))
    return;
  x = absorb_pad(call.model().graph, x, 0, conv.pads);
  emit_layer(call, conv, x, weight, call.has(2) ? call.constant(2) : at::Tensor());
}

void convert_gemm(Call& call) {
  if (call.integer("transA", 0) != 0)
    call.fail("transA=1 would multiply the images of the batch with each other");
  if (!call.is_constant(1))
    call.fail("multiplies the images of the batch with each other; B must be a constant");
  const auto& b = call.constant(1);
  if (b.dim() != 2) call.fail("B must be a matrix");
  auto weight = call.integer("transB", 0) != 0 ? b : b.t();
  if (const auto alpha = call.number("alpha", 1); alpha != 1) weight = weight.mul(alpha);
  const auto beta = call.number("beta", 1);
  if (!call.has(2) || beta == 0) return emit_linear(call, weight, {});
  if (call.is_constant(2)) {
    auto bias = gemm_bias(call, weight.size(0));
    if (beta != 1) bias = bias.mul(beta);
    return emit_linear(call, weight, bias);
  }
  auto c = call.activation(2);
  if (call.shape(c).size() != 2) call.fail("C must have two dimensions");
  emit_linear(call, weight, {});
  const auto product = call.result();
  if (beta != 1) c = call.part(Mul{}, {c, call.made_up(beta)});
  call.emit(Add{}, {product, c});
}

void convert_matmul(Call& call) {
  if (call.is_constant(0) || !call.is_constant(1)) return emit_product(call);
  auto weight = call.constant(1);
  if (weight.dim() == 1) return emit_vector_product(call);
  const auto rank = static_cast<std::int64_t>(call.shape(call.activation(0)).size());
  while (weight.dim() > 2 && weight.dim() <= rank && weight.size(0) == 1)
    weight = weight.squeeze(0);
  if (weight.dim() != 2) return emit_product(call);
  if (weight.size(1) == 1 && rank > 1 &&
      emit_expectation(call, call.activation(0), weight.flatten(), rank - 1, true))
    return;
  emit_linear(call, weight.t(), {});
}

void convert_batch_normalization(Call& call) {
  const auto name = call.layer_name(1);
  if (call.integer("training_mode", 0) != 0) call.remember_training_mode(name);
  if (normalize_before_spreading(call, name)) return;
  std::map<std::string, std::string> params;
  std::size_t input = 1;
  for (const auto* role : {"gamma", "beta", "mean", "variance"}) {
    params[role] = call.parameter(name, role, input, call.constant(input));
    ++input;
  }
  const BatchNorm norm{call.number("epsilon", 1e-5)};
  auto x = call.activation(0);
  // Channels are dimension 1 here, but the last of a linear layer; a map keeps the two apart.
  const Shape shape = call.shape(x);
  const bool as_map = shape.size() == 3 || (shape.size() > 3 && is<Linear>(call.model().graph[x]));
  if (!as_map) return call.bind({call.append(name, norm, {x}, params), {}});
  std::int64_t places = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) places *= shape[i];
  const bool of_signals = call.model().graph.signature.one_dimensional;
  x = call.part(Reshape{{shape[1], of_signals ? 1 : places, of_signals ? places : 1}}, {x});
  x = call.append(name, norm, {x}, params);
  call.emit(Reshape{{shape.begin() + 1, shape.end()}}, {x});
}

}  // namespace zsq::models::onnx
