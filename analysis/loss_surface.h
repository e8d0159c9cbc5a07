// SPDX-License-Identifier: Apache-2.0
// A loss on a plane through the weights (AIT 2203.17008, figure 2), in two random directions in
// which every filter is as long as the filter of the network (filter normalisation, Li et al.
// 1712.09913), so that slices of different networks may be compared.
#pragma once
#include <cstdint>
#include <functional>

#include "analysis/student_function.h"

namespace zsq::analysis {

// Normal, then each filter (the first dimension) scaled to the norm of that of `weights`. One-
// dimensional tensors get zeros.
Tensors filter_normalised_direction(const Tensors& weights, std::uint64_t seed);

struct LossSurface {
  std::vector<double> steps;                // along both directions, from -radius to radius
  std::vector<std::vector<double>> losses;  // [along the second][along the first]
};

// `points`: odd, so that the weights themselves are one of them.
LossSurface loss_surface(const std::function<double(const Tensors& weights)>& loss,
                         const Tensors& weights, const Tensors& first, const Tensors& second,
                         double radius, int points);

}  // namespace zsq::analysis
