// SPDX-License-Identifier: Apache-2.0
// Where a network normalises its own pixels.
#pragma once
#include <map>
#include <optional>
#include <utility>

#include "models/graph.h"

namespace zsq::quant {

// Of a network's input, whose pixels lie in [lo, hi], and of what only sums and products with
// constants, and what moves, repeats or interpolates values, make of it: each element is then a
// linear function of pixels, whose ends are at theirs. Quantizers on the way are passed by. `graph`
// and `parameters` must outlive it.
class PixelRanges {
 public:
  PixelRanges(const models::Graph& graph, const models::ParameterStore& parameters, double lo,
              double hi);
  // The least and the largest value of a node; nothing of any other node.
  std::optional<std::pair<double, double>> range(models::NodeId node);

 private:
  struct Bounds {
    at::Tensor least, largest;
    bool is_constant = false;
  };
  std::optional<Bounds> bounds(models::NodeId node);
  std::optional<Bounds> computed(const models::Node& node);

  const models::Graph& graph_;
  const models::ParameterStore& parameters_;
  std::map<models::NodeId, std::optional<Bounds>> known_;
};

}  // namespace zsq::quant
