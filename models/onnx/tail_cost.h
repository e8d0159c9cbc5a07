// SPDX-License-Identifier: Apache-2.0
// How much the end of a network that stays as it is multiplies.
#pragma once
#include <functional>

#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// Of one image, by the nodes that are of the tail: products of matrices, also in Gemm, recurrent
// layers and Attention. `importer` converts all nodes, in order, as far as it can; where shapes are
// not known to it, nothing is counted.
double multiplications_of(Importer& importer, const std::vector<const proto::Node*>& nodes,
                          const std::function<bool(const proto::Node&)>& is_of_tail);

}  // namespace zsq::models::onnx
