// SPDX-License-Identifier: Apache-2.0
// Attention that moves the batch to another dimension, or merges it with one, in files that fix it
// to 1. What such a file computes is a function of one image, whose tensors have as many elements
// as the file's. That function is computed for each image: all dimensions that the file sees, the
// one that would be the batch among them, come after the batch of a node [N, ...], and operators
// count one dimension more.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// Reads a node with an input that is an activation. before_convolution: as Importer::convert().
void convert_activations(Call& call, Convert convert, bool before_convolution);

}  // namespace zsq::models::onnx
