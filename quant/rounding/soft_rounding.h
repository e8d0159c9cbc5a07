// SPDX-License-Identifier: Apache-2.0
// Rounding that learns (AdaRound, Nagel et al. 2004.10568, eq. 22-24), on a grid whose step may
// learn too (Genie-M, Jeon et al. 2212.04780). From a weight w on the grid (s0, z) it keeps the
// neighbour below, B = floor(w / s0), and learns for each weight how far to go to the one above:
//   h(v) = clamp(1.2 sigmoid(v) - 0.1, 0, 1),   w^ = s clamp(B + h(v), qmin - z, qmax - z)
// v starts where h(v) = w / s0 - B, so that w^ = w inside the range; s is the quantizer's scale in
// the store. With a level table (quant/level_table.h) B is the level below w / s0 and g the gap to
// the next one: w^ = s (B + h(v) g), and v starts where h(v) = (w / s0 - B) / g.
#pragma once
#include "quant/student.h"

namespace zsq::quant {

// Stands in for a weight quantizer whose grid is fixed; what it reads from its input is B and the
// start of v, once. `weight` is not rounded: with a level table see inside_cells().
class SoftRounding : public models::CustomOp {
 public:
  SoftRounding(const WeightQuantizer& quantizer, const at::Tensor& weight,
               const models::ParameterStore& parameters);
  std::string kind() const override { return "soft_rounding"; }
  // Differentiable to v and to the scale.
  at::Tensor forward(const std::vector<at::Tensor>&, const models::ParameterStore&) const override;

  // v, a leaf of the weight's shape.
  const at::Tensor& logits() const { return logits_; }
  // Mean over the weights of 1 - |2 h(v) - 1|^sharpness (eq. 24): 0 if all are decided.
  at::Tensor rounding_regularizer(double sharpness) const;
  // The decision as a latent weight: the centre of the cell of the code B + [h(v) >= 1/2] g, from
  // where nearest rounding gives that code.
  at::Tensor decided(const models::ParameterStore& parameters) const;

 private:
  // `share`: of the way from B to the next level.
  at::Tensor on_grid(const at::Tensor& share, const models::ParameterStore& parameters) const;

  std::string scale_name_;
  at::Tensor floor_, logits_, lowest_, highest_;  // lowest, highest: of codes, from the zero point
  at::Tensor gap_;                                // undefined: 1
};

}  // namespace zsq::quant
