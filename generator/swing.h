// SPDX-License-Identifier: Apache-2.0
// Swing convolution (Genie, arXiv 2212.04780). A strided convolution reads its input on a fixed
// lattice, which optimised images learn to serve alone; shifted at random, no pixel is left out.
#pragma once
#include <ATen/core/Generator.h>

#include "models/graph.h"

namespace zsq::generator {

// The graph with a shift before each convolution of stride s > 1: rows and columns each by a
// whole number drawn uniformly from -(s-1) .. s-1, borders reflected. The shapes stay as they are.
models::Graph swing(const models::Graph& graph, const at::Generator& stream);

}  // namespace zsq::generator
