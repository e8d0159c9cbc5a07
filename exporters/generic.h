// SPDX-License-Identifier: Apache-2.0
// Q/DQ form that names 4-bit types (opset 21): weights of 4 bits and fewer are UINT4 with a zero
// point per channel, and so are activations that only such layers read; the rest is uint8 and int8.
// Biases are int32 on the scale that int8 codes would have: onnxruntime rounds float ones to
// multiples of the products of 4-bit codes, although it computes in float. For archives and for
// accelerators with 4-bit units; onnxruntime and OpenVINO store these types, and compute such
// layers in float.
#pragma once
#include "exporters/qdq_form.h"

namespace zsq::exporters {

class GenericForm : public QdqForm {
 public:
  CodeTensor quantize(OnnxBuilder& builder, const std::string& x,
                      const ActivationCodes& activation) const override;
  std::string weight(OnnxBuilder& builder, const WeightCodes& weight) const override;
};

}  // namespace zsq::exporters
