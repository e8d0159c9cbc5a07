// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "core/error.h"
#include "exporters/tflite/windows.h"
#include "models/execute.h"
#include "models/load.h"

namespace zsq::exporters::tflite {
namespace {

// The form in which LiteRT takes a layer.
struct Form {
  BuiltinOperator code;
  int channel_dimension = 0;  // of the weight
  std::vector<std::int64_t> weight_order;
};

bool is_depthwise(const models::Conv2d& conv, std::int64_t channels) {
  return conv.groups == channels && conv.groups > 1;
}

Form form_of(const models::Node& node, std::int64_t channels) {
  const auto* conv = models::get_if<models::Conv2d>(node);
  if (!conv) return {BuiltinOperator::FULLY_CONNECTED, 0, {0, 1}};
  if (is_depthwise(*conv, channels)) return {BuiltinOperator::DEPTHWISE_CONV_2D, 3, {1, 2, 3, 0}};
  return {BuiltinOperator::CONV_2D, 0, {0, 2, 3, 1}};
}

template <class Options>
Options conv_options(const Windows& windows, Padding padding, Activation activation) {
  Options options;
  options.padding = padding;
  options.stride_h = static_cast<int>(windows.stride[0]);
  options.stride_w = static_cast<int>(windows.stride[1]);
  options.dilation_h_factor = static_cast<int>(windows.dilation[0]);
  options.dilation_w_factor = static_cast<int>(windows.dilation[1]);
  options.fused_activation_function = activation;
  return options;
}

struct Operands {
  TensorId weight, bias;
};

// `kernel`: height and width of the weight.
TensorId convolution(Builder& builder, const Layer& layer, const Form& form,
                     const Operands& operands, models::Pair kernel, Activation activation,
                     const Kind& kind) {
  const auto& conv = *models::get_if<models::Conv2d>(layer.node);
  const Windows windows{
      kernel, conv.stride, conv.dilation, conv.pads, {layer.out_shape[2], layer.out_shape[3]}};
  const Padded x = pad_for(builder, layer.x, windows, PadWith::zero, layer.node.name);
  BuiltinOptionsUnion options;
  if (form.code == BuiltinOperator::DEPTHWISE_CONV_2D) {
    auto depthwise = conv_options<DepthwiseConv2DOptionsT>(windows, x.padding, activation);
    depthwise.depth_multiplier =
        static_cast<int>(layer.out_shape[1] / builder.shape(layer.x).back());
    options = options_of(depthwise);
  } else {
    options = options_of(conv_options<Conv2DOptionsT>(windows, x.padding, activation));
  }
  return builder.node(
      form.code, std::move(options), {x.x, operands.weight, operands.bias}, layer.node.name,
      {layer.out_shape[0], windows.out[0], windows.out[1], layer.out_shape[1]}, kind);
}

TensorId linear(Builder& builder, const Layer& layer, const Operands& operands,
                Activation activation, const Kind& kind) {
  FullyConnectedOptionsT options;
  options.fused_activation_function = activation;
  return builder.node(BuiltinOperator::FULLY_CONNECTED, options_of(options),
                      {layer.x, operands.weight, operands.bias}, layer.node.name, layer.out_shape,
                      kind);
}

TensorId add_layer(Builder& builder, const Layer& layer, const Form& form, const Operands& operands,
                   const at::Tensor& weight) {
  const Kind kind = layer.grid ? layer.grid->kind() : Kind{};
  const Activation activation = layer.grid ? fused(*layer.grid) : Activation::NONE;
  const TensorId y = form.code == BuiltinOperator::FULLY_CONNECTED
                         ? linear(builder, layer, operands, activation, kind)
                         : convolution(builder, layer, form, operands,
                                       {weight.size(2), weight.size(3)}, activation, kind);
  return layer.grid ? limit(builder, y, *layer.grid, true, layer.node.name) : y;
}

std::vector<float> floats(const formats::Array& array) {
  const auto values = array.as<float>();
  return {values.begin(), values.end()};
}

Kind per_channel(TensorType type, std::vector<float> scale, int dimension) {
  std::vector<std::int64_t> zeros(scale.size());
  return {type, std::move(scale), std::move(zeros), dimension};
}

}  // namespace

TensorId integer_layer(Builder& builder, const Layer& layer, const LayerCodes& codes) {
  const Form form = form_of(layer.node, builder.shape(layer.x).back());
  const at::Tensor weight = models::to_tensor(codes.weight);
  const std::vector<float> scale = floats(codes.scale);
  const float step = builder.kind(layer.x).scale.at(0);
  std::vector<float> product;
  for (const float s : scale) product.push_back(s * step);
  const at::Tensor bias =
      codes.bias ? models::to_tensor(*codes.bias) : at::zeros({weight.size(0)}, at::kInt);
  const std::string& name = layer.node.name;
  const Operands operands{
      builder.constant(name + ".weight",
                       models::to_array(weight.permute(form.weight_order).contiguous()),
                       per_channel(TensorType::INT8, scale, form.channel_dimension)),
      builder.constant(name + ".bias", models::to_array(bias),
                       per_channel(TensorType::INT32, std::move(product), 0))};
  return add_layer(builder, layer, form, operands, weight);
}

TensorId float_layer(Builder& builder, const Layer& layer, const at::Tensor& weight,
                     const at::Tensor& bias) {
  const Form form = form_of(layer.node, builder.shape(layer.x).back());
  const std::string& name = layer.node.name;
  const at::Tensor stored = bias.defined() ? bias.detach() : at::zeros({weight.size(0)});
  const Operands operands{
      builder.constant(name + ".weight",
                       models::to_array(weight.detach().permute(form.weight_order).contiguous())),
      builder.constant(name + ".bias", models::to_array(stored))};
  return add_layer(builder, layer, form, operands, weight);
}

TensorId scaled_sum(Builder& builder, TensorId x, const ScaledSum& sum, const Grid& grid,
                    const std::string& name) {
  // A code of 64 instead of 1 makes the step of the addend as much finer.
  const double code = sum.addend == 0 ? 1 : 64;
  const std::int64_t channels = builder.shape(x).back();
  const models::Node node{name, models::Conv2d{.stride = sum.stride, .groups = channels}, {}, {}};
  LayerCodes codes;
  const auto ones = at::ones({channels});
  const auto scale = (sum.scale.defined() ? sum.scale : ones).mul(sum.factor / code).contiguous();
  codes.weight = models::to_array(
      at::full({channels, 1, sum.kernel[0], sum.kernel[1]}, static_cast<int>(code), at::kChar));
  codes.scale = models::to_array(scale);
  const auto step = scale.to(at::kDouble).mul(builder.kind(x).scale.at(0));
  codes.bias = models::to_array(step.reciprocal().mul(sum.addend).round().to(at::kInt));
  return integer_layer(
      builder, {node, x, {builder.shape(x)[0], channels, sum.out[0], sum.out[1]}, grid}, codes);
}

}  // namespace zsq::exporters::tflite
