// SPDX-License-Identifier: Apache-2.0
#include "exporters/tensorrt.h"

namespace zsq::exporters {
namespace {

constexpr std::int64_t kLowest = -128, kHighest = 127;

}  // namespace

std::string TensorrtForm::refusal(const ActivationCodes& a) const {
  const std::int64_t lowest = a.bounds.lowest - a.zero_point;
  const std::int64_t highest = a.bounds.highest - a.zero_point;
  if (lowest >= kLowest && highest <= kHighest) return "";
  return "its " + std::to_string(a.spec.num_bits) + "-bit codes go from " + std::to_string(lowest) +
         " to " + std::to_string(highest) + " once the zero point is 0, and int8 from -128 to 127";
}

std::string TensorrtForm::refusal(const WeightCodes& weight) const {
  if (weight.layer.weight.dtype == formats::DType::i8) return "";
  return "its weights are asymmetric with 8 bits, so that they need zero points";
}

CodeTensor TensorrtForm::quantize(OnnxBuilder& builder, const std::string& x,
                                  const ActivationCodes& activation) const {
  return quantize_to_int8(builder, x, activation);
}

}  // namespace zsq::exporters
