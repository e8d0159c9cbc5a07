// SPDX-License-Identifier: Apache-2.0
// LayerNormalization over channels, and GELU as one operator or in the parts that exporters write.
#include <ATen/ops/zeros.h>

#include <cmath>

#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

bool is_number(const Call& call, std::size_t input, double wanted) {
  return call.is_constant(input) && call.constant(input).numel() == 1 &&
         std::abs(call.constant(input).item<double>() - wanted) < 1e-6;
}

void emit_gelu(Call& call, NodeId x) {
  const auto map = map_before_channels_last(call.model().graph, x);
  if (map < 0)
    call.emit(Gelu{}, {x});
  else
    emit_on_map(call, call.unique_name(), Gelu{}, map);
}

void bind_part(Call& call, GeluPart part) {
  Value value;
  value.gelu = part;
  call.bind(std::move(value));
}

}  // namespace

void convert_layer_normalization(Call& call) {
  const auto x = call.activation(0);
  const auto& shape = call.shape(x);
  const auto axis = call.integer("axis", -1);
  if (axis != -1 && axis != static_cast<std::int64_t>(shape.size()) - 1)
    call.fail("only a normalisation over the last dimension is known");
  const auto name = call.layer_name(1);
  const auto channels = shape.back();
  const auto beta = call.has(2) ? call.constant(2) : at::zeros({channels});
  if (call.constant(1).numel() != channels || beta.numel() != channels)
    call.fail("one scale and one bias per channel were expected");
  std::map<std::string, std::string> params;
  params["gamma"] = call.parameter(name, "gamma", 1, call.constant(1).reshape({-1}));
  params["beta"] = call.parameter(name, "beta", call.has(2) ? 2 : 1, beta.reshape({-1}));
  const double eps = call.number("epsilon", 1e-5);
  const auto map = map_before_channels_last(call.model().graph, x);
  if (map >= 0) return emit_on_map(call, name, LayerNorm{eps}, map, params);
  if (shape.size() != 2) call.fail("is known over the channels of a map or of features only");
  call.bind({call.append(name, LayerNorm{eps, false}, {x}, params), {}});
}

void convert_gelu(Call& call) {
  if (call.text("approximate", "none") != "none") call.fail("only the exact form is known");
  emit_gelu(call, call.activation(0));
}

// Of x / sqrt 2 alone.
void convert_erf(Call& call) {
  const auto& graph = call.model().graph;
  const Node& scaled = graph[call.activation(0)];
  const auto* factor = is<Mul>(scaled) && is<Parameter>(graph[scaled.inputs[1]])
                           ? &call.model().parameters.at(graph[scaled.inputs[1]].params.at("value"))
                           : nullptr;
  const bool fits =
      factor && factor->numel() == 1 && std::abs(factor->item<double>() - std::sqrt(0.5)) < 1e-6;
  if (!fits) call.fail("is known as a part of GELU only");
  bind_part(call, {scaled.inputs[0], GeluPart::erf});
}

bool continue_gelu(Call& call) {
  if (call.inputs() != 2) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto part = call.value(i).gelu;
    if (!part) continue;
    const auto& other = call.value(1 - i);
    const bool sums = call.node().op_type == "Add";
    if (part->part == GeluPart::erf && sums && is_number(call, 1 - i, 1)) {
      bind_part(call, {part->x, GeluPart::one_plus_erf});
    } else if (part->part == GeluPart::one_plus_erf && !sums && other.node == part->x) {
      bind_part(call, {part->x, GeluPart::times_x});
    } else if (part->part == GeluPart::times_x && !sums && is_number(call, 1 - i, 0.5)) {
      emit_gelu(call, part->x);
    } else {
      call.fail("erf is known as a part of GELU only");
    }
    return true;
  }
  return false;
}

}  // namespace zsq::models::onnx
