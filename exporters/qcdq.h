// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear -> Clip -> DequantizeLinear, in which Brevitas exports networks and from which
// QONNX makes its Quant nodes: an integer Clip after each QuantizeLinear to fewer than 8 bits
// states the width, of weights too, which are therefore stored as floats that are on their grid.
// Weights have the student's own codes, with a zero point per channel where the grid is asymmetric;
// biases are floats. Further limits (a folded ReLU6) are in float before QuantizeLinear.
#pragma once
#include "exporters/qdq_form.h"

namespace zsq::exporters {

class QcdqForm : public QdqForm {
 public:
  CodeTensor quantize(OnnxBuilder& builder, const std::string& x,
                      const ActivationCodes& activation) const override;
  std::string weight(OnnxBuilder& builder, const WeightCodes& weight) const override;
  std::string bias(OnnxBuilder& builder, const WeightCodes& weight,
                   const std::string& name) const override {
    return float_bias(builder, name, weight.layer);
  }
};

}  // namespace zsq::exporters
