// SPDX-License-Identifier: Apache-2.0
// Whether a file takes images [N, H, W, C], as those that come from TensorFlow and Keras do.
#pragma once
#include <string>
#include <vector>

#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// `live`: nodes in file order; `shape`: of the input, -1 is open. True if all readers of the input
// are transpositions to channels first, or if one follows the preprocessing and the last dimension,
// but not the second, is 1, 3 or 4.
bool reads_channels_last(const std::vector<const proto::Node*>& live, const std::string& input,
                         const Shape& shape);

}  // namespace zsq::models::onnx
