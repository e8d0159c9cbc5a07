// SPDX-License-Identifier: Apache-2.0
#include "exporters/layer_codes.h"

#include <ATen/TensorOperators.h>

#include <limits>

#include "models/load.h"

namespace zsq::exporters {

using models::to_array;

LayerCodes layer_codes(const quant::IntegerWeights& weights, std::optional<float> input_scale) {
  LayerCodes result;
  std::vector<std::int64_t> per_channel(static_cast<std::size_t>(weights.codes.dim()), 1);
  per_channel[0] = -1;
  const at::Tensor shifted = weights.codes - weights.zero_point.view(per_channel);
  if (shifted.min().item<int>() >= -128 && shifted.max().item<int>() <= 127) {
    result.weight = to_array(shifted.to(at::kChar));
    result.zero_point = to_array(weights.zero_point.mul(0).to(at::kChar));
  } else {
    result.weight = to_array((weights.codes + 128).to(at::kByte));
    result.zero_point = to_array((weights.zero_point + 128).to(at::kByte));
  }
  result.scale = to_array(weights.scale);
  if (!weights.bias.any().item<bool>()) return result;
  if (!input_scale) {
    result.bias = to_array(weights.bias);
    return result;
  }
  const at::Tensor step = weights.scale * *input_scale;
  const at::Tensor codes = (weights.bias.to(at::kDouble) / step.to(at::kDouble)).round();
  constexpr double most = std::numeric_limits<std::int32_t>::max();
  result.bias = to_array(codes.clamp(-most, most).to(at::kInt));
  result.bias_scale = to_array(step);
  return result;
}

}  // namespace zsq::exporters
