// SPDX-License-Identifier: Apache-2.0
// What the end of a detector tells of its outputs, beside their names and shapes.
#pragma once
#include <string>
#include <vector>

#include "models/graph.h"

namespace zsq::eval {

struct NetworkEnd {
  // Of each output: whether a softmax or a sigmoid gives it, as it does scores and not boxes. Empty
  // of a network with one row of outputs.
  std::vector<bool> is_probability = {};
  // "NonMaxSuppression, TopK": operators that zsq does not compute (models/tail.h), of which the
  // outputs are what they read. Empty: none.
  std::string opaque = {};
  // TopK is among them and NonMaxSuppression is not: the network was trained to give each object
  // one box (YOLOv10, RT-DETR).
  bool takes_best = false;
  bool centred = false;  // NonMaxSuppression takes boxes as centre x, y, width and height
};

NetworkEnd end_of(const models::Graph& graph);

}  // namespace zsq::eval
