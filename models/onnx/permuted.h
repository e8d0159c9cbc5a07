// SPDX-License-Identifier: Apache-2.0
// Activations whose batch is not the first dimension: attention puts queries, keys and values first
// and takes them apart right after, and PaddlePaddle's assignments put a dimension before the
// batch, add 0 and drop it again.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// The node's output stands for x with its dimensions in another order; a Transpose is made where
// the batch is first again.
void bind_permuted(Call& call, NodeId x, const std::vector<std::int64_t>& order,
                   std::size_t output = 0);

// Add and Mul with one number, Transpose, Gather of one index, Slice, Split and Squeeze of such a
// value, by its own dimensions. False: another operator, or no such value.
bool convert_permuted(Call& call);

}  // namespace zsq::models::onnx
