// SPDX-License-Identifier: Apache-2.0
// The distributions of a network's tensors over its training images, inferred from the running
// statistics of its BatchNorm layers: no image is needed. Rows are those of
// quant/data_free/distribution.h.
//   BatchNorm         N(beta, gamma^2 v / (v + eps)), whatever its input
//   LayerNorm         N(beta, gamma^2), whatever its input
//   Clip, sigmoid, HardSwish, LeakyReLU, ...   f of the rows. Add and Mul of tensors that are
//                     functions of one and the same tensor as well, so x * sigmoid(x) is exact
//   Add, Mul          otherwise, of independent tensors: a squeeze-and-excitation gate, which
//                     hardly varies, scales each channel
//   Conv2d, Linear    without BatchNorm: N(W m + bias, W^2 s^2) (inputs independent), zeros at the
//                     border
//   AvgPool, GlobalAvgPool   of n values with the average correlation r of two of them (rows.h):
//                     distribution::average_of()
//   MaxPool           of n values: the largest of n^(1 - r) independent ones
//   Pad, Concat, Slice, Resize, Flatten, Reshape, Expand, ...   move values; a padded place is a
//                     constant
//   Elementwise, Binary, MatMul, Reduce, Softmax, Interpolate, ... quant/data_free/operator_rows.h
//   network input     PixelLaw
//   quantizers        pass on
#pragma once
#include "models/graph.h"

namespace zsq::quant {

struct Moments {
  at::Tensor mean, variance;  // f32 [1, ...], the shape of the tensor for one image
};

// What distributions are for. A layer without BatchNorm after it has a mean that follows from its
// weights, and a deviation only as far as its inputs are independent. Before a function, cautious
// distributions therefore have, on the side where 0 lies, a deviation of at least half of the
// mean's distance to 0, so that a range by them has values on both sides of 0 (of a ReLU only where
// the mean is negative): a sigmoid of them can be 0 and 1.
enum class Purpose { estimates, ranges };

// Normal, of the pixels of an image: N(0, 1) if their interval [lo, hi] is that of normalised
// images (0 well inside, at most 8 long), or if it is not known (lo = hi). Of any other, as 0..1
// and 0..255, the mean is the middle and the deviation a quarter of the length: cut at 0, N(0, 1)
// would shift the mean of the first layer's input.
struct PixelLaw {
  double mean = 0, variance = 1;
};
PixelLaw pixel_law(double lo, double hi);

// Of the outputs of `nodes`, in their order: rows f32 [distribution::kNodes, ...].
std::vector<at::Tensor> activation_distributions(const models::Graph& graph,
                                                 const models::ParameterStore& parameters,
                                                 const std::vector<models::NodeId>& nodes,
                                                 Purpose purpose = Purpose::estimates,
                                                 PixelLaw pixels = {});
std::vector<Moments> activation_moments(const models::Graph& graph,
                                        const models::ParameterStore& parameters,
                                        const std::vector<models::NodeId>& nodes);

// What a Conv2d or Linear node makes of x [N, ...] with these weights and no bias.
at::Tensor apply_layer(const models::Node& layer, const at::Tensor& x, const at::Tensor& weight);

}  // namespace zsq::quant
