// SPDX-License-Identifier: Apache-2.0
// What the targets of Q/DQ files decide differently: the types of codes, what keeps codes within
// their bounds, and how weights and biases are stored. exporters/qdq_model.h writes the rest. A
// form changes no value that the student computes, or refuses.
#pragma once
#include "exporters/code_bounds.h"
#include "exporters/layer_codes.h"
#include "exporters/onnx_builder.h"

namespace zsq::exporters {

// One activation quantizer.
struct ActivationCodes {
  std::string name;  // of its node
  std::string scale_name, zero_point_name;
  quant::QuantizerSpec spec;
  float scale = 1;
  std::int64_t zero_point = 0;
  CodeBounds bounds;
  bool feeds_addition = false;
  // Every reader is a layer whose weights have 4 bits or fewer on a uniform grid.
  bool feeds_four_bit_layers = false;
};

// Names in the graph.
struct CodeTensor {
  std::string codes, scale, zero_point;
};

struct WeightCodes {
  std::string name;  // of the weight
  const quant::QuantizerSpec& spec;
  const quant::IntegerWeights& integers;  // on the student's own grid
  LayerCodes& layer;                      // the same in int8, with its bias
};

class QdqForm {
 public:
  virtual ~QdqForm() = default;

  // Why the quantizer cannot be written without changing values; empty if it can.
  virtual std::string refusal(const ActivationCodes&) const { return ""; }
  virtual std::string refusal(const WeightCodes&) const { return ""; }

  // Adds QuantizeLinear, and what keeps its codes within their bounds.
  virtual CodeTensor quantize(OnnxBuilder&, const std::string& x, const ActivationCodes&) const = 0;
  // Adds what gives the weight; int8 with zero point 0 if nothing else is said.
  virtual std::string weight(OnnxBuilder&, const WeightCodes&) const;
  // Adds what gives the bias: int32 on the scale of the products, where there is one.
  virtual std::string bias(OnnxBuilder&, const WeightCodes&, const std::string& name) const;
  // Runtimes of the file add products of two neighbouring codes in 16 bits on x86 without VNNI
  // (quant/pair_bound.h).
  virtual bool saturates() const { return true; }
  // A quantizer after a quantizer, and a HardSigmoid, as sums of codes (onnxruntime).
  virtual bool sums_codes() const { return false; }
};

// --- Parts that several forms share ---

// uint8 codes q + shift, limited by an integer Clip, or Min before an addition, where the type does
// not do it.
CodeTensor quantize_to_uint8(OnnxBuilder&, const std::string& x, const ActivationCodes&);

// int8 codes q - z with zero point 0, limited in float where the type does not do it.
CodeTensor quantize_to_int8(OnnxBuilder&, const std::string& x, const ActivationCodes&);

// x limited to the values of the bounds in float: only the ends that values reach and that
// [type_lowest, type_highest], in codes of the student's grid, does not limit. Rounding is
// monotone, so limiting before it equals limiting codes. onnxruntime cannot load a Relu or Clip
// before QuantizeLinear to UINT4, but a Max and Min.
enum class LimitBy { relu_or_clip, max_and_min };
std::string limit_values(OnnxBuilder&, const std::string& x, const ActivationCodes&,
                         std::int64_t type_lowest, std::int64_t type_highest,
                         LimitBy by = LimitBy::relu_or_clip);

// The bias in f32: the values that int32 codes have, so that every target adds the same.
std::string float_bias(OnnxBuilder&, const std::string& name, LayerCodes&);

// An int8 weight, unpacked from 4 bits where the layer holds it packed.
std::string int8_weight(OnnxBuilder&, const std::string& name, LayerCodes&);

}  // namespace zsq::exporters
