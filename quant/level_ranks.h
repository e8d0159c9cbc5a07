// SPDX-License-Identifier: Apache-2.0
// Fine-tuning of weights that have level tables. Nearest-level rounding is uniform in ranks: with
// levels l_0 < l_1 < ... times the scale s, a weight between two of them has the rank
//   u = k + (w / s - l_k) / (l_{k+1} - l_k),
// and w lies nearer to l_{k+1} than to l_k exactly where u > k + 1/2. So while a student is
// trained, its latent weights are ranks on the uniform grid 0, 1, ..., 2^b - 1 of scale 1, on which
// fake quantization and gradient inundation work as on any, and the network computes with
//   w^ = s l_r,  r = clamp(round(u), 0, 2^b - 1).
#pragma once
#include <string>
#include <vector>

#include "quant/level_table.h"

namespace zsq::quant {

// w^ of whole ranks r f32 [C, ...]; `levels` f32 [C, 2^b], scale included. The gradient of a rank
// is not that of w^ times the distance g of levels, but divided by it: du = dw / g is what a step
// of gradient descent on the weight does to its rank. g is the mean distance of level r to its
// neighbours (repeated ones left out); 0 where a channel has a single level.
at::Tensor weights_of_ranks(const at::Tensor& ranks, const at::Tensor& levels);

// What layers compute with: of quantized ranks these weights, of all else what the quantizer gave.
at::Tensor to_weights(const WeightQuantizer& op, const at::Tensor& quantized,
                      const models::ParameterStore& parameters);

// The nearest ranks, whole, of weights f32 [C, ...].
at::Tensor ranks_of_weights(const at::Tensor& weights, const at::Tensor& levels);

// Puts the layers of a student that have level tables into ranks, and back when asked; rounded
// weights stay what they are, both ways. Error(unsupported_model) if layers share a weight that
// they quantize differently.
class LevelRanks {
 public:
  explicit LevelRanks(Student& student);
  void restore();

 private:
  struct Layer {
    std::string parameter, scale, levels;  // names in the store
    LevelGrids grids;
  };
  Student& student_;
  models::Graph graph_;  // as it was
  std::vector<Layer> layers_;
};

}  // namespace zsq::quant
