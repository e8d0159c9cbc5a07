// SPDX-License-Identifier: Apache-2.0
// Mean and variance of a network's tensors over its training images, told by its BatchNorm layers:
// no image is needed.
//   BatchNorm         mean beta, variance gamma^2 v / (v + eps), whatever comes in
//   Clip [a, b]       of N(m, s^2), with p = (a - m) / s, q = (b - m) / s, phi and Phi of N(0, 1):
//                       E y   = a Phi(p) + b (1 - Phi(q)) + m (Phi(q) - Phi(p))
//                               + s (phi(p) - phi(q))           (arXiv 1906.04721, appendix C)
//                       E y^2 = a^2 Phi(p) + b^2 (1 - Phi(q)) + (m^2 + s^2) (Phi(q) - Phi(p))
//                               + s ((m + a) phi(p) - (m + b) phi(q))
//   other functions   of one value: E f and E f^2 by quadrature over N(m, s^2)
//   Conv2d, Linear    mean W m + bias, variance W^2 s^2 (inputs independent), zeros at the border
//   Add, Mul          of independent tensors
//   pools             a window holds one value over: mean and variance stay
//   network input     mean 0, variance 1: images as they are normalised
//   quantizers        pass on
#pragma once
#include "models/graph.h"

namespace zsq::quant {

struct Moments {
  at::Tensor mean, variance;  // f32 [1, ...], the shape of the tensor for one image
};

// Of the outputs of `nodes`, in their order. A Softmax may only come after them.
std::vector<Moments> activation_moments(const models::Graph& graph,
                                        const models::ParameterStore& parameters,
                                        const std::vector<models::NodeId>& nodes);

// What a Conv2d or Linear node makes of x [N, ...] with these weights and no bias.
at::Tensor apply_layer(const models::Node& layer, const at::Tensor& x, const at::Tensor& weight);

}  // namespace zsq::quant
