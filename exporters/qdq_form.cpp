// SPDX-License-Identifier: Apache-2.0
#include "exporters/qdq_form.h"

#include <ATen/TensorOperators.h>

#include "models/load.h"

namespace zsq::exporters {
namespace {

std::string bound(OnnxBuilder& builder, std::int64_t code) {
  return builder.scalar("code_" + std::to_string(code), static_cast<std::uint8_t>(code));
}

// UINT4 came with opset 21.
std::string unpack(OnnxBuilder& builder, const std::string& weight, PackedCodes packed) {
  builder.require_opset(21);
  const auto to_i32 = [&](const std::string& name, formats::Array array) {
    return builder.node("Cast", {builder.constant(name, std::move(array))}, name + ".i32",
                        {{"to", std::int64_t{6}}});
  };
  const std::string places = builder.node("Add",
                                          {to_i32(weight + ".ranks", std::move(packed.ranks)),
                                           to_i32(weight + ".offsets", std::move(packed.offsets))},
                                          weight + ".places");
  return builder.node("Gather",
                      {builder.constant(weight + ".levels", std::move(packed.levels)), places},
                      weight + ".codes");
}

}  // namespace

std::string QdqForm::weight(OnnxBuilder& builder, const WeightCodes& weight) const {
  return int8_weight(builder, weight.name, weight.layer);
}

std::string QdqForm::bias(OnnxBuilder& builder, const WeightCodes& weight,
                          const std::string& name) const {
  LayerCodes& codes = weight.layer;
  if (!codes.bias_scale) return builder.constant(name, std::move(*codes.bias));
  return builder.node("DequantizeLinear",
                      {builder.constant(name + ".codes", std::move(*codes.bias)),
                       builder.constant(name + ".scale", std::move(*codes.bias_scale))},
                      name, {{"axis", std::int64_t{0}}});
}

// onnxruntime takes half the time for a Clip of a Min's. OpenVINO rounds differently with one where
// an Add follows.
CodeTensor quantize_to_uint8(OnnxBuilder& builder, const std::string& x, const ActivationCodes& a) {
  const std::int64_t shift = -a.spec.qmin;
  const std::int64_t lowest = a.bounds.lowest + shift, highest = a.bounds.highest + shift;
  const bool below = a.bounds.reached_below && lowest > 0;
  const bool above = a.bounds.reached_above && highest < 255;
  CodeTensor tensor{
      "", builder.scalar(a.scale_name, a.scale),
      builder.scalar(a.zero_point_name, static_cast<std::uint8_t>(a.zero_point + shift))};
  const std::string name = a.name + ".codes";
  tensor.codes = builder.node("QuantizeLinear", {x, tensor.scale, tensor.zero_point}, name);
  if (a.feeds_addition && above && !below)
    tensor.codes = builder.node("Min", {tensor.codes, bound(builder, highest)}, name);
  else if (above || below)
    tensor.codes =
        builder.node("Clip", {tensor.codes, bound(builder, lowest), bound(builder, highest)}, name);
  return tensor;
}

CodeTensor quantize_to_int8(OnnxBuilder& builder, const std::string& x, const ActivationCodes& a) {
  const std::string limited = limit_values(builder, x, a, a.zero_point - 128, a.zero_point + 127);
  CodeTensor tensor{"", builder.scalar(a.scale_name, a.scale),
                    builder.scalar("zero", std::int8_t{0})};
  tensor.codes =
      builder.node("QuantizeLinear", {limited, tensor.scale, tensor.zero_point}, a.name + ".codes");
  return tensor;
}

std::string limit_values(OnnxBuilder& builder, const std::string& x, const ActivationCodes& a,
                         std::int64_t type_lowest, std::int64_t type_highest, LimitBy by) {
  const bool below = a.bounds.reached_below && a.bounds.lowest > type_lowest;
  const bool above = a.bounds.reached_above && a.bounds.highest < type_highest;
  if (!below && !above) return x;
  const std::string name = a.name + ".limited";
  const auto end = [&](std::int64_t code, const char* suffix) {
    const auto steps = static_cast<float>(code - a.zero_point);
    return builder.scalar(a.name + suffix, steps * a.scale);
  };
  const auto least = [&] { return end(a.bounds.lowest, ".least"); };
  const auto most = [&] { return end(a.bounds.highest, ".most"); };
  if (by == LimitBy::max_and_min) {
    const std::string from = below ? builder.node("Max", {x, least()}, name) : x;
    return above ? builder.node("Min", {from, most()}, name) : from;
  }
  if (below && !above && a.bounds.lowest == a.zero_point) return builder.node("Relu", {x}, name);
  return builder.node("Clip", {x, below ? least() : "", above ? most() : ""}, name);
}

std::string float_bias(OnnxBuilder& builder, const std::string& name, LayerCodes& codes) {
  if (!codes.bias_scale) return builder.constant(name, std::move(*codes.bias));
  const at::Tensor value =
      models::to_tensor(*codes.bias).to(at::kFloat) * models::to_tensor(*codes.bias_scale);
  return builder.constant(name, models::to_array(value));
}

std::string int8_weight(OnnxBuilder& builder, const std::string& name, LayerCodes& codes) {
  const std::string stored = codes.packed
                                 ? unpack(builder, name, std::move(*codes.packed))
                                 : builder.constant(name + ".codes", std::move(codes.weight));
  return builder.node("DequantizeLinear",
                      {stored, builder.constant(name + ".scale", std::move(codes.scale)),
                       builder.constant(name + ".zero_point", std::move(codes.zero_point))},
                      name, {{"axis", std::int64_t{0}}});
}

}  // namespace zsq::exporters
