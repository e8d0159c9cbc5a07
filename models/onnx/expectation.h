// SPDX-License-Identifier: Apache-2.0
// Means of distributions, as decoders of boxes have them: sum over k of w_k softmax(x)_k, which
// files write as a convolution or a product of matrices with one output.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// Where x comes from a Softmax and changes but its shape: binds the sum over `axis` of x times the
// weights, [K] or a shape that broadcasts to x, and answers true. No layer of the network, so that
// its layers before the Softmax are the last ones.
bool emit_expectation(Call& call, NodeId x, const at::Tensor& weights, std::int64_t axis,
                      bool keepdims);

}  // namespace zsq::models::onnx
