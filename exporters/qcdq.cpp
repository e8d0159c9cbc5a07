// SPDX-License-Identifier: Apache-2.0
#include "exporters/qcdq.h"

#include <ATen/TensorOperators.h>

#include "models/load.h"

namespace zsq::exporters {
namespace {

// The codes that a grid of the student has, shifted to start where its type does.
template <class Code>
std::string clip(OnnxBuilder& builder, const std::string& codes, std::int64_t lowest,
                 std::int64_t highest) {
  const auto bound = [&](std::int64_t code) {
    return builder.scalar((std::is_signed_v<Code> ? "int8_" : "uint8_") + std::to_string(code),
                          static_cast<Code>(code));
  };
  return builder.node("Clip", {codes, bound(lowest), bound(highest)}, codes);
}

}  // namespace

CodeTensor QcdqForm::quantize(OnnxBuilder& builder, const std::string& x,
                              const ActivationCodes& a) const {
  const std::int64_t shift = -a.spec.qmin;
  const std::string limited = limit_values(builder, x, a, a.spec.qmin, a.spec.qmax);
  CodeTensor tensor{
      "", builder.scalar(a.scale_name, a.scale),
      builder.scalar(a.zero_point_name, static_cast<std::uint8_t>(a.zero_point + shift))};
  tensor.codes =
      builder.node("QuantizeLinear", {limited, tensor.scale, tensor.zero_point}, a.name + ".codes");
  if (a.spec.num_bits < 8)
    tensor.codes = clip<std::uint8_t>(builder, tensor.codes, 0, a.spec.qmax + shift);
  return tensor;
}

std::string QcdqForm::weight(OnnxBuilder& builder, const WeightCodes& weight) const {
  const auto& [name, spec, integers, layer] = weight;
  const bool on_grid = integers.codes.min().item<int>() >= spec.qmin &&
                       integers.codes.max().item<int>() <= spec.qmax;
  if (spec.format != quant::NumberFormat::uniform || !on_grid)
    return int8_weight(builder, name, layer);
  const at::Tensor value = quant::values_of(integers);
  const OnnxBuilder::Attributes rows{{"axis", std::int64_t{0}}};
  const std::string scale = builder.constant(name + ".scale", models::to_array(integers.scale));
  const std::string zero_point =
      builder.constant(name + ".zero_point", models::to_array(integers.zero_point.to(at::kChar)));
  std::string codes =
      builder.node("QuantizeLinear",
                   {builder.constant(name + ".value", models::to_array(value)), scale, zero_point},
                   name + ".codes", rows);
  if (spec.qmax - spec.qmin < 255) codes = clip<std::int8_t>(builder, codes, spec.qmin, spec.qmax);
  return builder.node("DequantizeLinear", {codes, scale, zero_point}, name, rows);
}

}  // namespace zsq::exporters
