// SPDX-License-Identifier: Apache-2.0
#include "exporters/generic.h"

#include <ATen/TensorOperators.h>

#include "models/load.h"

namespace zsq::exporters {
namespace {

constexpr std::int64_t kUint4 = 21, kOpset = 21;  // TensorProto.DataType; the first with UINT4

// Of codes that begin at 0.
formats::Array to_u4(const at::Tensor& codes) {
  const at::Tensor bytes = codes.to(at::kByte).contiguous();
  return formats::pack_u4(bytes.sizes().vec(), {bytes.const_data_ptr<std::uint8_t>(),
                                                static_cast<std::size_t>(bytes.numel())});
}

bool fits(const WeightCodes& weight) {
  const at::Tensor& codes = weight.integers.codes;
  return has_four_bits(weight.spec) && codes.min().item<int>() >= weight.spec.qmin &&
         codes.max().item<int>() <= weight.spec.qmax;
}

}  // namespace

CodeTensor GenericForm::quantize(OnnxBuilder& builder, const std::string& x,
                                 const ActivationCodes& a) const {
  if (a.spec.num_bits > 4 || !a.feeds_four_bit_layers) return quantize_to_uint8(builder, x, a);
  builder.require_opset(kOpset);
  const std::string limited = limit_values(builder, x, a, 0, 15, LimitBy::max_and_min);
  const auto zero_point = static_cast<std::uint8_t>(a.zero_point);
  CodeTensor tensor{"", builder.scalar(a.scale_name, a.scale),
                    builder.constant(a.zero_point_name, formats::pack_u4({}, {&zero_point, 1}))};
  tensor.codes = builder.node("QuantizeLinear", {limited, tensor.scale, tensor.zero_point},
                              a.name + ".codes", {{"output_dtype", kUint4}});
  return tensor;
}

std::string GenericForm::weight(OnnxBuilder& builder, const WeightCodes& weight) const {
  const quant::IntegerWeights& integers = weight.integers;
  if (!fits(weight)) return int8_weight(builder, weight.name, weight.layer);
  builder.require_opset(kOpset);
  const auto name = [&](const char* part) { return weight.name + part; };
  return builder.node(
      "DequantizeLinear",
      {builder.constant(name(".codes"), to_u4(integers.codes - weight.spec.qmin)),
       builder.constant(name(".scale"), models::to_array(integers.scale)),
       builder.constant(name(".zero_point"), to_u4(integers.zero_point - weight.spec.qmin))},
      weight.name, {{"axis", std::int64_t{0}}});
}

}  // namespace zsq::exporters
