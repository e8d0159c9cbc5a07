// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear -> [Max] -> [Min or Clip] -> DequantizeLinear on an activation. The first opens a
// chain, the middle ones narrow its codes, the last closes it with one Custom node.
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>

#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

// Codes of the integer type: that of the zero point, or the attribute if there is none.
std::pair<std::int64_t, std::int64_t> code_range(Call& call) {
  if (call.has(2) ? call.is_four_bit_initializer(2) : call.integer("output_dtype", 2) == 21)
    return {0, 15};
  auto type = call.has(2) ? call.constant(2).scalar_type() : at::kByte;
  if (!call.has(2) && call.integer("output_dtype", 2) == 3) type = at::kChar;
  if (type == at::kByte) return {0, 255};
  if (type == at::kChar) return {-128, 127};
  call.fail("only uint8, int8 and uint4 codes are known");
}

std::int64_t zero_point_of(const Call& call) {
  return call.has(2) ? static_cast<std::int64_t>(call.scalar(2)) : 0;
}

// The codes at another scale than they were made with: `ratio` times what they stand for.
NodeId read_at(Call& call, float ratio, std::shared_ptr<const CustomOp> op, NodeId x) {
  const NodeId value = call.append(call.unique_name(), Custom{std::move(op)}, {x});
  const std::string factor = call.unique_name();
  call.model().parameters.set(factor, at::scalar_tensor(ratio, at::kFloat));
  const NodeId constant = call.append(factor, Parameter{}, {}, {{"value", factor}});
  return call.append(call.unique_name(), Mul{}, {value, constant});
}

}  // namespace

void convert_quantize_linear(Call& call) {
  if (!call.options().make_quantize_chain) {
    call.fail("the file holds an already quantized network; a float network was expected");
  }
  if (call.constant(1).numel() != 1) {
    call.fail(
        "quantizes an activation per channel, as NNCF does before a depthwise convolution; "
        "one scale for the whole map was expected: quantize activations per tensor, or bring "
        "the float network");
  }
  QuantizeChain chain;
  chain.scale = static_cast<float>(call.scalar(1));
  chain.zero_point = zero_point_of(call);
  if (!(chain.scale > 0) || !std::isfinite(chain.scale)) call.fail("the scale must be positive");
  std::tie(chain.qmin, chain.qmax) = code_range(call);
  call.bind({call.activation(0), {}, QuantizedActivation{call.name(), chain}});
}

bool narrow_quantized(Call& call, double lo, double hi) {
  auto value = call.value(0);
  if (!value.quantized) return false;
  auto& chain = value.quantized->chain;
  if (lo > static_cast<double>(chain.qmin)) chain.qmin = std::llround(lo);
  if (hi < static_cast<double>(chain.qmax)) chain.qmax = std::llround(hi);
  call.bind(value);
  return true;
}

void convert_dequantize_linear(Call& call) {
  const auto value = call.value(0);
  if (!value.quantized) call.fail("its input is no integer tensor");
  const auto& chain = value.quantized->chain;
  // Layers that share an input read its codes by a DequantizeLinear each.
  const auto name = call.unique_name(value.quantized->name);
  if (zero_point_of(call) != chain.zero_point)
    call.fail("the zero point differs from that of the QuantizeLinear before it");
  const auto scale = static_cast<float>(call.scalar(1));
  auto op = call.options().make_quantize_chain(name, chain, call.model().parameters);
  Value result;
  result.node = scale == chain.scale
                    ? call.append(name, Custom{std::move(op)}, {value.node})
                    : read_at(call, scale / chain.scale, std::move(op), value.node);
  result.is_matrix = value.is_matrix;
  call.bind(std::move(result));
}

}  // namespace zsq::models::onnx
