// SPDX-License-Identifier: Apache-2.0
#include "exporters/layer_codes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/minimum.h>

#include <algorithm>

#include "models/load.h"
#include "quant/pair_bound.h"

namespace zsq::exporters {
namespace {

using models::to_array;

// The bias becomes an integer multiple of input step * weight step, which is coarse where codes are
// few: at W4A4 half of it is an appreciable part of an output code. Few bits leave room in int8, so
// the codes of a channel are multiplied and its scale is divided by this power of two, which
// changes no weight. Limits: |code| <= 127; two products fit into 16 bits, in which x86 without
// VNNI adds them up; a bias below 2^30.
at::Tensor refinement(const at::Tensor& largest_code, const at::Tensor& bias_codes,
                      std::int64_t largest_input) {
  const double most = std::min(127.0, 32767.0 / static_cast<double>(2 * largest_input));
  const at::Tensor room =
      at::minimum(most / largest_code.clamp_min(1), (1 << 30) / bias_codes.abs().clamp_min(1));
  return room.clamp_min(1).log2().floor().exp2();
}

}  // namespace

std::optional<InputCodes> input_codes(const quant::Student& student, const models::Node& layer,
                                      bool saturates) {
  const auto* input = calibrated_quantizer(student, layer.inputs[0]);
  if (!input) return std::nullopt;
  const models::Node& latent = student.graph[student.graph[layer.inputs.at(1)].inputs[0]];
  const at::Tensor& weight = student.parameters.at(latent.params.at("value"));
  const bool bounded = saturates && student.options.weights.saturation != Saturation::allow;
  return InputCodes{activation_grid(student, *input).scale, input->spec().qmax - input->spec().qmin,
                    bounded ? quant::pair_bound_of_layer(layer, weight, input) : 0};
}

LayerCodes layer_codes(const quant::IntegerWeights& weights, const std::optional<InputCodes>& input,
                       bool pack) {
  LayerCodes result;
  at::Tensor shifted = quant::steps_of(weights);
  at::Tensor scale = weights.scale, bias = weights.bias.to(at::kDouble), levels = weights.levels;
  const bool fits =
      shifted.min().item<int>() >= -128 && shifted.max().item<int>() <= 127 &&
      !(input && input->pair_bound && quant::breaks_pair_bound(shifted, input->pair_bound));
  const auto bias_codes = [&] { return bias / (scale * input->scale).to(at::kDouble); };
  if (fits && input) {
    const at::Tensor largest = shifted.abs().flatten(1).amax(1).to(at::kDouble);
    const at::Tensor factor = refinement(largest, bias_codes(), input->largest);
    shifted = shifted * quant::per_channel(factor.to(at::kInt), shifted);
    if (levels.defined()) levels = levels * factor.to(at::kInt).unsqueeze(1);
    scale = scale / factor.to(at::kFloat);
  }
  result.weight = to_array(fits ? shifted.to(at::kChar) : (weights.codes + 128).to(at::kByte));
  if (pack && fits && levels.defined()) result.packed = pack_codes(shifted, levels);
  result.zero_point = to_array(fits ? weights.zero_point.mul(0).to(at::kChar)
                                    : (weights.zero_point + 128).to(at::kByte));
  result.scale = to_array(scale);
  if (!bias.any().item<bool>()) return result;
  if (!input) {
    result.bias = to_array(weights.bias);
    return result;
  }
  result.bias = to_array(bias_codes().round().to(at::kInt));
  result.bias_scale = to_array(scale * input->scale);
  return result;
}

}  // namespace zsq::exporters
