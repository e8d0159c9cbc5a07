// SPDX-License-Identifier: Apache-2.0
// Where synthetic images lie among the classes (Qimera 2111.02625, figure 2): the features that the
// classifier reads, standardised and seen along their two widest axes, and the pairs of classes
// between which some image lies.
#pragma once
#include <cstdint>
#include <vector>

#include "models/graph.h"

namespace zsq::analysis {

// What the last linear layer or 1x1 convolution reads, f32 [N, features].
at::Tensor features_of(const models::Model& model, const at::Tensor& images);

// Fitted on features [N, F] of one set of images, used for all.
struct Projection {
  at::Tensor mean, deviation;  // [F]
  at::Tensor axes;             // [2, F], orthonormal, the widest first
  double explained = 0;        // share of the variance along both
};
Projection fit_projection(const at::Tensor& features);
at::Tensor project(const Projection& projection, const at::Tensor& features);  // [N, 2]

// An image lies between the two classes that a network finds most probable in it if the second is
// at least `ratio` times as probable as the first.
struct PairCoverage {
  std::int64_t covered = 0, pairs = 0;      // unordered pairs of classes
  double between = 0;                       // share of the images that lie between two
  std::vector<std::vector<double>> images;  // [class][class], symmetric: how many lie there
};
PairCoverage pair_coverage(const at::Tensor& logits, double ratio = 0.5);

}  // namespace zsq::analysis
