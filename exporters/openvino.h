// SPDX-License-Identifier: Apache-2.0
// Q/DQ form for OpenVINO's CPU plugin, whose low-precision transformations turn it into integers:
// that of onnxruntime, but for sums of codes, which it does not know. Weights have zero point 0, or
// their layer runs in float. Activations on a symmetric grid are int8 with zero point 0: OpenVINO
// 2026.4 cannot compile a Pad of channels whose codes have another.
#pragma once
#include "exporters/qdq_form.h"

namespace zsq::exporters {

class OpenvinoForm : public QdqForm {
 public:
  CodeTensor quantize(OnnxBuilder& builder, const std::string& x,
                      const ActivationCodes& activation) const override {
    return activation.spec.symmetric ? quantize_to_int8(builder, x, activation)
                                     : quantize_to_uint8(builder, x, activation);
  }
};

}  // namespace zsq::exporters
