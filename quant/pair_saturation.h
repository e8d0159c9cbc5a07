// SPDX-License-Identifier: Apache-2.0
// What x86 processors without VNNI compute of an integer network (quant/pair_bound.h says how):
// the products of two neighbours are added in 16 bits, [-32768, 32767], before they join the sum.
// An emulation for any processor; docs/formats.md names the runtimes that it was checked against.
#pragma once
#include <map>
#include <string>

#include "models/graph.h"

namespace zsq::quant {

// Scales, f32 [] or [out], of the weights that a file holds as int8 with zero point 0, by the names
// of their parameters.
using Int8Scales = std::map<std::string, at::Tensor>;

// The network of an exported file whose layers saturate as above: a node after each layer that can
// adds what saturation changes. A layer can where its input is an activation quantizer of unsigned
// codes, its weight is in `scales`, it is not depthwise, and a pair of neighbours is beyond the
// bound; where none can, the network stays as it is.
struct SaturatingNetwork {
  models::Graph graph;
  std::int64_t layers = 0;    // that can saturate
  std::int64_t channels = 0;  // of them, those with a pair beyond the bound
};
SaturatingNetwork with_pair_saturation(const models::Graph& graph,
                                       const models::ParameterStore& parameters,
                                       const Int8Scales& scales);

}  // namespace zsq::quant
