// SPDX-License-Identifier: Apache-2.0
// Q/DQ form that onnxruntime executes in integers on x86: uint8 activations, an integer clamp
// between QuantizeLinear and DequantizeLinear for fewer than 8 bits, no operator between a
// convolution and its QuantizeLinear, int32 biases.
#pragma once
#include "exporters/qdq_form.h"

namespace zsq::exporters {

class OnnxruntimeForm : public QdqForm {
 public:
  CodeTensor quantize(OnnxBuilder& builder, const std::string& x,
                      const ActivationCodes& activation) const override {
    return quantize_to_uint8(builder, x, activation);
  }
  bool sums_codes() const override { return true; }
};

}  // namespace zsq::exporters
