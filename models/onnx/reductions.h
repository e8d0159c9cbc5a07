// SPDX-License-Identifier: Apache-2.0
// Parts that normalisations and reductions are composed of.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// Axes of an activation, counted from the front, in order, each once. Refused: the batch, unless
// the file fixes a batch of one and `keepdims` lets its dimension stay.
std::vector<std::int64_t> image_axes(const Call& call, std::vector<std::int64_t> axes,
                                     std::size_t dimensions, bool keepdims);

// A mean over height and width of a map is GlobalAvgPool. A map after a transposition to channels
// last is reduced before it.
NodeId reduce(Call& call, ReduceKind kind, NodeId x, std::vector<std::int64_t> axes, bool keepdims);

// (x - mean) / sqrt(variance + eps) over the axes; without `centred` x / sqrt(mean of x^2 + eps).
NodeId normalized(Call& call, NodeId x, const std::vector<std::int64_t>& axes, double eps,
                  bool centred);

// x - log sum exp(x) over one axis.
NodeId log_softmax(Call& call, NodeId x, std::int64_t axis);

}  // namespace zsq::models::onnx
