// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/layers.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>

#include "exporters/ncnn/settings.h"
#include "models/load.h"

namespace zsq::exporters::ncnn {
namespace {

constexpr std::int64_t kLargestCode = 127, kWinogradFactor = 576;

template <class T>
std::vector<T> values(const at::Tensor& tensor) {
  const formats::Array array = models::to_array(tensor.contiguous());
  const auto all = array.as<T>();
  return {all.begin(), all.end()};
}

struct Form {
  std::string type;
  Settings settings;
};

Form form_of(const models::Node& node, const at::Tensor& weight, std::int64_t groups,
             bool has_bias) {
  const auto* conv = models::get_if<models::Conv2d>(node);
  if (!conv)
    return {
        "InnerProduct",
        {{0, text(weight.size(0))}, {1, text(std::int64_t{has_bias})}, {2, text(weight.numel())}}};
  Form form{groups == 1 ? "Convolution" : "ConvolutionDepthWise",
            {{0, text(weight.size(0))},
             {1, text(weight.size(3))},
             {11, text(weight.size(2))},
             {2, text(conv->dilation[1])},
             {12, text(conv->dilation[0])},
             {3, text(conv->stride[1])},
             {13, text(conv->stride[0])},
             {4, text(conv->pads[1])},
             {14, text(conv->pads[0])},
             {15, text(conv->pads[3])},
             {16, text(conv->pads[2])},
             {5, text(std::int64_t{has_bias})},
             {6, text(weight.numel())}}};
  if (groups != 1) form.settings[7] = text(groups);
  return form;
}

std::string add_one(Net& net, const models::Node& node, const std::string& x,
                    const std::string& name, const LayerWeights& weights, const InputGrid& grid,
                    std::int64_t groups) {
  auto [type, settings] = form_of(node, weights.codes, groups, weights.bias.defined());
  settings[kInt8Scales] = text(groups == 1 ? kScalesOfChannels : kScalesOfGroups);
  if (type == "Convolution" && overflows_in_winograd(weights, grid))
    settings[kFeatureMask] = text(kNoWinograd);
  const float input_scale = 1 / grid.step;
  Weights stored;
  stored.add_codes(values<std::int8_t>(weights.codes.to(at::kChar)));
  if (weights.bias.defined()) stored.add(values<float>(weights.bias));
  stored.add(values<float>(weights.scale.reciprocal()));
  stored.add(std::span(&input_scale, 1));
  std::string output = net.unique(name);
  net.add({type, output, {x}, {output}, settings, stored, input_scale});
  return output;
}

LayerWeights part(const LayerWeights& weights, std::int64_t group, std::int64_t size) {
  const auto of = [&](const at::Tensor& all) {
    return all.defined() ? all.narrow(0, group * size, size) : all;
  };
  return {of(weights.codes), of(weights.scale), of(weights.bias)};
}

// ncnn's grouped convolution in int8 has one scale for a group, and computes nonsense where
// channels are packed.
std::string add_groups(Net& net, const models::Node& node, const std::string& x,
                       const LayerWeights& weights, const InputGrid& grid, std::int64_t groups) {
  const std::vector<std::int64_t> widths(static_cast<std::size_t>(groups), weights.codes.size(1));
  Layer slice{"Slice", net.unique(node.name + ".slice"), {x}, {}, {{array_key(0), text(widths)}}};
  std::vector<std::string> results;
  for (std::int64_t g = 0; g < groups; ++g)
    slice.outputs.push_back(net.unique(node.name + ".input" + std::to_string(g)));
  const std::vector<std::string> inputs = net.add(slice).outputs;
  for (std::int64_t g = 0; g < groups; ++g)
    results.push_back(add_one(net, node, inputs[static_cast<std::size_t>(g)],
                              node.name + ".group" + std::to_string(g),
                              part(weights, g, weights.codes.size(0) / groups), grid, 1));
  return net.add("Concat", results, node.name, {{0, "0"}});
}

}  // namespace

LayerWeights layer_weights(const quant::IntegerWeights& integers,
                           const std::optional<InputCodes>& input) {
  const LayerCodes codes = layer_codes(integers, input, false);
  at::Tensor bias;
  if (codes.bias) bias = models::to_tensor(*codes.bias).to(at::kFloat);
  if (codes.bias_scale) bias = bias * models::to_tensor(*codes.bias_scale);
  return {quant::steps_of(integers), integers.scale, bias};
}

bool fits_int8(const LayerWeights& weights) {
  return weights.codes.abs().max().item<std::int64_t>() <= kLargestCode;
}

bool overflows_in_winograd(const LayerWeights& weights, const InputGrid& grid) {
  if (weights.codes.dim() != 4 || weights.codes.size(2) != 3 || weights.codes.size(3) != 3)
    return false;
  const at::Tensor w = weights.codes.to(at::kLong).flatten(1);
  const at::Tensor above = w.clamp_min(0).sum(1), below = w.neg().clamp_min(0).sum(1);
  const std::int64_t up = std::max<std::int64_t>(grid.most, 0);
  const std::int64_t down = std::max<std::int64_t>(-grid.least, 0);
  const std::int64_t most = std::max((above * up + below * down).max().item<std::int64_t>(),
                                     (above * down + below * up).max().item<std::int64_t>());
  return most > std::numeric_limits<std::int32_t>::max() / kWinogradFactor;
}

std::string add_int8_layer(Net& net, const models::Node& node, const std::string& x,
                           const LayerWeights& weights, const InputGrid& grid) {
  const auto* conv = models::get_if<models::Conv2d>(node);
  const std::int64_t groups = conv ? conv->groups : 1;
  const bool depthwise = groups == weights.codes.size(0) && weights.codes.size(1) == 1;
  if (groups == 1 || depthwise) return add_one(net, node, x, node.name, weights, grid, groups);
  return add_groups(net, node, x, weights, grid, groups);
}

std::string add_float_layer(Net& net, const models::Node& node, const std::string& x,
                            const at::Tensor& weight, const at::Tensor& bias) {
  const auto* conv = models::get_if<models::Conv2d>(node);
  const Form form = form_of(node, weight, conv ? conv->groups : 1, bias.defined());
  Weights stored;
  stored.add_tagged(values<float>(weight.detach()));
  if (bias.defined()) stored.add(values<float>(bias.detach()));
  return net.add(form.type, {x}, node.name, form.settings, stored);
}

}  // namespace zsq::exporters::ncnn
