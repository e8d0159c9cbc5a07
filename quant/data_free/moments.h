// SPDX-License-Identifier: Apache-2.0
// The distributions of a network's tensors over its training images, inferred from the running
// statistics of its BatchNorm layers: no image is needed. Rows are those of
// quant/data_free/distribution.h.
//   BatchNorm         N(beta, gamma^2 v / (v + eps)), whatever its input
//   LayerNorm         N(beta, gamma^2), whatever its input
//   Clip, sigmoid, HardSwish, LeakyReLU, ...   f of the rows. Add and Mul of tensors that are
//                     functions of one and the same tensor as well, so x * sigmoid(x) is exact
//   Add, Mul          otherwise, of independent tensors: a squeeze-and-excitation gate, which
//   hardly
//                     varies, scales each channel
//   Conv2d, Linear    without BatchNorm: N(W m + bias, W^2 s^2) (inputs independent), zeros at the
//                     border
//   AvgPool, GlobalAvgPool   of n values with the average correlation r of two of them
//                     (moments.cpp): deviations times sqrt(r + (1 - r) / n)
//   MaxPool           of n values: the largest of n^(1 - r) independent ones
//   Pad, Concat, Slice, Resize, Flatten, ...   move values; a padded place is a constant
//   network input     N(0, 1): images as they are normalised
//   quantizers        pass on
#pragma once
#include "models/graph.h"

namespace zsq::quant {

struct Moments {
  at::Tensor mean, variance;  // f32 [1, ...], the shape of the tensor for one image
};

// Of the outputs of `nodes`, in their order: rows f32 [distribution::kNodes, ...]. A Softmax may
// only come after them.
std::vector<at::Tensor> activation_distributions(const models::Graph& graph,
                                                 const models::ParameterStore& parameters,
                                                 const std::vector<models::NodeId>& nodes);
std::vector<Moments> activation_moments(const models::Graph& graph,
                                        const models::ParameterStore& parameters,
                                        const std::vector<models::NodeId>& nodes);

// What a Conv2d or Linear node makes of x [N, ...] with these weights and no bias.
at::Tensor apply_layer(const models::Node& layer, const at::Tensor& x, const at::Tensor& weight);

}  // namespace zsq::quant
