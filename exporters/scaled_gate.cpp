// SPDX-License-Identifier: Apache-2.0
#include "exporters/scaled_gate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "core/error.h"
#include "exporters/float_ops.h"
#include "models/load.h"

namespace zsq::exporters {

std::string scaled_gate(OnnxBuilder& builder, const models::Node& gate,
                        const models::ParameterStore& parameters, const std::string& x,
                        float input_scale) {
  constexpr std::int8_t kCode = 127;
  const auto& op = *models::get_if<models::HardSigmoid>(gate);
  const auto step = parameters.at(gate.params.at("scale")).detach().flatten().mul(op.alpha / kCode);
  const auto product = step.mul(input_scale);
  const std::int64_t channels = step.numel();
  const auto constant = [&](const char* role, const at::Tensor& value) {
    return builder.constant(gate.name + role, models::to_array(value.contiguous()));
  };
  const OnnxBuilder::Attributes first_axis{{"axis", std::int64_t{0}}};
  const auto weight =
      builder.node("DequantizeLinear",
                   {constant(".weight.codes", at::full({channels, 1, 1, 1}, kCode, at::kChar)),
                    constant(".weight.scale", step),
                    constant(".weight.zero_point", at::zeros({channels}, at::kChar))},
                   gate.name + ".weight", first_axis);
  const auto beta = product.reciprocal().mul(op.beta).round().to(at::kInt);
  const auto bias = builder.node("DequantizeLinear",
                                 {constant(".bias.codes", beta), constant(".bias.scale", product)},
                                 gate.name + ".bias", first_axis);
  models::Conv2d conv;
  conv.groups = channels;
  return builder.node("Conv", {x, weight, bias}, gate.name,
                      conv_attributes(conv, {channels, 1, 1, 1}));
}

void require_plain_gates(const models::Graph& graph, const std::string& target) {
  for (const auto& node : graph.nodes) {
    if (!models::is<models::HardSigmoid>(node) || !node.params.contains("scale")) continue;
    std::string why = "target " + target + " cannot hold the gate '" + node.name;
    why += "' of this run, which has a scale per channel; quantize the network with ";
    why += "quantize.target=" + target;
    throw Error(ErrorCode::unsupported_model, why);
  }
}

}  // namespace zsq::exporters
