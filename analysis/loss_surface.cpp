// SPDX-License-Identifier: Apache-2.0
#include "analysis/loss_surface.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include "core/error.h"

namespace zsq::analysis {

Tensors filter_normalised_direction(const Tensors& weights, std::uint64_t seed) {
  auto random = at::detail::createCPUGenerator(seed);
  Tensors direction;
  for (const at::Tensor& weight : weights) {
    if (weight.dim() < 2) {
      direction.push_back(at::zeros_like(weight));
      continue;
    }
    const auto rows = weight.detach().reshape({weight.size(0), -1});
    const auto random_rows = at::randn(rows.sizes(), random, at::kFloat).to(weight.device());
    const auto length = [](const at::Tensor& x) { return x.square().sum(1, true).sqrt(); };
    direction.push_back((random_rows * (length(rows) / length(random_rows))).view(weight.sizes()));
  }
  return direction;
}

LossSurface loss_surface(const std::function<double(const Tensors& weights)>& loss,
                         const Tensors& weights, const Tensors& first, const Tensors& second,
                         double radius, int points) {
  if (points < 3 || points % 2 == 0)
    throw Error(ErrorCode::usage, "a loss surface has an odd number of points, 3 or more");
  LossSurface surface;
  for (int i = 0; i < points; ++i) surface.steps.push_back(radius * (2.0 * i / (points - 1) - 1));
  for (const double b : surface.steps) {
    std::vector<double> row;
    for (const double a : surface.steps) {
      Tensors moved;
      for (std::size_t i = 0; i < weights.size(); ++i)
        moved.push_back(weights[i].add(first[i], a).add(second[i], b));
      row.push_back(loss(moved));
    }
    surface.losses.push_back(std::move(row));
  }
  return surface;
}

}  // namespace zsq::analysis
