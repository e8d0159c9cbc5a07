// SPDX-License-Identifier: Apache-2.0
// Q/DQ form for TensorRT ("Working with Quantized Types"): every code is int8 with zero point 0,
// weights have a scale per output channel, nothing stands between QuantizeLinear and
// DequantizeLinear, biases are floats, both inputs of an addition are quantized. Fewer than 8 bits
// are limits in float before QuantizeLinear, which TensorRT fuses as it does an activation.
#pragma once
#include "exporters/qdq_form.h"

namespace zsq::exporters {

class TensorrtForm : public QdqForm {
 public:
  // Codes q - z that leave int8: asymmetric ranges of 8 bits.
  std::string refusal(const ActivationCodes& activation) const override;
  std::string refusal(const WeightCodes& weight) const override;
  CodeTensor quantize(OnnxBuilder& builder, const std::string& x,
                      const ActivationCodes& activation) const override;
  bool saturates() const override { return false; }
  std::string bias(OnnxBuilder& builder, const WeightCodes& weight,
                   const std::string& name) const override {
    return float_bias(builder, name, weight.layer);
  }
};

}  // namespace zsq::exporters
