// SPDX-License-Identifier: Apache-2.0
// How a file takes its images: [N, H, W, C] where it comes from TensorFlow or Keras, [C, H, W]
// where it is a detector of torchvision, which takes a list of images.
#pragma once
#include <string>
#include <vector>

#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// `live`: nodes in file order; `shape`: of the input, -1 is open.
// channels_last: all readers of the input are transpositions to channels first, or one follows the
// preprocessing and the last dimension, but not the second, is 1, 3 or 4. one_image: of three
// dimensions the first is 3 or 4, and convolutions have two sides.
InputLayout input_layout(const std::vector<const proto::Node*>& live,
                         const formats::NamedArrays& initializers, const std::string& input,
                         const Shape& shape);

}  // namespace zsq::models::onnx
