// SPDX-License-Identifier: Apache-2.0
// Shapes of rows (quant/data_free/distribution.h), and how values of one image go together.
#pragma once
#include <functional>
#include <vector>

#include "models/execute.h"
#include "models/graph.h"

namespace zsq::quant {

// Rows of a node's output from those of its inputs; a constant is the tensor that it is.
using RowsRule =
    std::function<at::Tensor(const std::vector<at::Tensor>&, const models::ParameterStore&)>;

// Average correlation of two different places of a channel, after ReLU, over images: in a window,
// in a map. Measured on dead leaves in layers of ResNet-20, EfficientNet-Lite0 and four networks
// with random weights: 0.18 to 0.29 in windows of 2 x 2, whose largest value is that of 4^0.7
// independent ones; in a whole map 0.05 to 0.13 on average over the layers, 0.23 to 0.35 in the
// layer where it is highest. The latter counts, because what is averaged over a map has tails that
// are not normal: few images show what a late channel looks for.
constexpr double kNearCorrelation = 0.3, kFarCorrelation = 0.35;

// As many rows as `rows` has, of a tensor that is `shape` for one image.
at::Tensor as_large_as(const models::Shape& shape, const at::Tensor& rows);

// [kNodes, C, H, W] that has one distribution at all places of a channel, and one of these.
bool same_everywhere(const at::Tensor& rows);
at::Tensor one_place(const at::Tensor& rows);

}  // namespace zsq::quant
