// SPDX-License-Identifier: Apache-2.0
// The end of a network that no graph interprets: decoding of boxes, NonMaxSuppression, TopK,
// ArgMax. Its nodes stay as the ONNX file has them and are written back; they compute in float on
// what the graph's outputs give.
#pragma once
#include "formats/onnx.h"

namespace zsq::models {

struct Tail {
  std::vector<formats::onnx::Node> nodes;  // in the file's order
  // What they read beside the graph's outputs (Output::name) and the network's input.
  formats::NamedArrays constants;
  std::vector<formats::onnx::ValueInfo> outputs;  // of the file: of these nodes, or of the graph
  std::int64_t opset = 0;                         // of the default domain
  std::map<std::string, std::int64_t> domains;    // of other domains that the nodes are of
  double multiplications = 0;                     // of one image, as far as shapes tell them
  std::int64_t batch = -1;                        // that the file fixes; -1: it is open
};

// "NonMaxSuppression, TopK": the operators of the tail, each once, in alphabetical order.
std::string operators_of(const Tail& tail);

}  // namespace zsq::models
