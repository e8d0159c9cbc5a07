// SPDX-License-Identifier: Apache-2.0
// What a network does last. Softmax, LogSoftmax or Sigmoid over its classes leaves the graph for
// Graph::signature, so that every measure works on what enters it; dimensions of 1 in the output
// leave it as well.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

struct Ending {
  NodeId node;  // what enters the function
  OutputFunction function = OutputFunction::none;
  OutputKind kind = OutputKind::logits;
};

// `output`: of the file. It must have at most one dimension that is not 1 after the batch. One
// number per image, the output of a BatchNorm and a vector divided by its length are values; what
// a Sigmoid follows is scores; the rest is logits.
Ending find_ending(const Graph& graph, const std::vector<Shape>& shapes,
                   const std::map<NodeId, LogSoftmaxPart>& log_softmaxes, NodeId output);

}  // namespace zsq::models::onnx
