// SPDX-License-Identifier: Apache-2.0
// Values that tensors of a network take, with probabilities, as its BatchNorm statistics imply
// (quant/data_free/moments.h).
#pragma once
#include <map>

#include "quant/data_free/distribution.h"
#include "quant/data_free/moments.h"

namespace zsq::quant {

class InferredValues {
 public:
  // Keeps a reference to the graph. For ranges, values below which a gate with a scale per channel
  // is 0 (models::HardSigmoid) count as those where it begins: they need no codes.
  InferredValues(const models::Graph& graph, const models::ParameterStore& parameters,
                 const std::vector<models::NodeId>& nodes, Purpose purpose = Purpose::estimates,
                 PixelLaw pixels = {});

  // One of `nodes`: values f32 [n, values of the tensor that differ in their distribution], at most
  // 4096 of the latter, and probabilities f32 [n, 1].
  distribution::Values of(models::NodeId node) const;

  // E[f(x)], f32 [1, ...], the shape of the tensor for one image. `function` acts on each value.
  at::Tensor mean_of(models::NodeId node,
                     const std::function<at::Tensor(const at::Tensor&)>& function) const;

 private:
  bool is_plain_clip(models::NodeId id) const;  // one interval for all channels
  // Interpolated before a Clip, whose corners no interpolation would keep.
  models::NodeId before_clip(models::NodeId id) const;
  at::Tensor clipped(models::NodeId id, const at::Tensor& values) const;

  const models::Graph& graph_;
  std::map<models::NodeId, at::Tensor> rows_;
};

}  // namespace zsq::quant
