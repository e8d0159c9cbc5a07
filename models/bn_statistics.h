// SPDX-License-Identifier: Apache-2.0
// BatchNorm statistics from outside of a network file, for convolutions whose BatchNorm was folded
// into them on export. A folded convolution computes
//   y = W' x + b',   W' = W gamma / sqrt(v + eps),   b' = beta + (b - m) gamma / sqrt(v + eps)
// where u = W x + b was the input of the BatchNorm (gamma, beta, m, v). Statistics are given in one
// of two forms:
//   mean, variance              of y over the training images, which are beta and
//                               gamma^2 v / (v + eps). The BatchNorm that follows the convolution
//                               from then on has these as its running statistics, sqrt(variance +
//                               eps) as gamma and the mean as beta: it passes y on.
//   mean, variance, gamma,      of the BatchNorm as it was trained: m, v, gamma and beta. The fold
//   beta                        is undone: W = W' sqrt(v + eps) / gamma and
//                               b = (b' - beta) sqrt(v + eps) / gamma + m. A channel with gamma = 0
//                               keeps W' (which is 0) and gets b = m.
// Either way the network computes what it did. With the second form the BatchNorm-statistics loss
// is that of the network before the fold. With the first form it is that of y: the normalised form
// of the loss is the same, the others weigh channels by their gain gamma / sqrt(v + eps).
#pragma once
#include <filesystem>
#include <map>

#include "models/graph.h"

namespace zsq::models {

struct ChannelStatistics {
  at::Tensor mean, variance;  // f32 [channels]
  at::Tensor gamma, beta;     // undefined: the first form
};

// By the name of a Conv2d node.
using StatisticsByLayer = std::map<std::string, ChannelStatistics>;

// A safetensors file with <name>.running_mean, <name>.running_var and, for the second form,
// <name>.weight and <name>.bias; its metadata may hold `eps` (else 1e-5). <name> is a layer's name
// in the network, the name of its weight without ".weight", or the module in PyTorch that the name
// of an ONNX node tells ("/layer1/layer1.0/conv1/Conv": "layer1.0.conv1"). Adds the BatchNorm
// nodes; convolutions that the file does not name stay as they are, which a warning of the model
// counts. Error(bad_input) names what does not fit.
void add_batch_norm_from(const std::filesystem::path& file, Model& model);

// The same from memory; convolutions not in `statistics` stay. Error(bad_input) if a layer has a
// BatchNorm already or another number of channels.
void add_batch_norm(const StatisticsByLayer& statistics, double eps, Model& model);

// Names of the Conv2d nodes that a BatchNorm does not follow.
std::vector<std::string> convolutions_without_batch_norm(const Graph& graph);

}  // namespace zsq::models
