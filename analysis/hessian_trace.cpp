// SPDX-License-Identifier: Apache-2.0
#include "analysis/hessian_trace.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>

#include <cmath>

#include "core/seed.h"

namespace zsq::analysis {
namespace {

Tensors rademacher(const Tensors& like, std::uint64_t seed) {
  auto random = at::detail::createCPUGenerator(seed);
  Tensors signs;
  for (const at::Tensor& tensor : like)
    signs.push_back(
        at::randint(0, 2, tensor.sizes(), random, at::kFloat).mul_(2).sub_(1).to(tensor.device()));
  return signs;
}

Tensors moved(const Tensors& weights, const Tensors& direction, double length) {
  Tensors result;
  for (std::size_t i = 0; i < weights.size(); ++i)
    result.push_back(weights[i].add(direction[i], length));
  return result;
}

}  // namespace

TraceEstimate hessian_trace(const GradientFunction& gradient, const Tensors& weights, double h,
                            std::int64_t probes, std::uint64_t seed) {
  TraceEstimate result;
  result.layers.assign(weights.size(), 0);
  double squares = 0;
  const auto n = static_cast<double>(probes);
  for (std::int64_t probe = 0; probe < probes; ++probe) {
    const Tensors v =
        rademacher(weights, stream_seed(seed, "hessian_trace", static_cast<std::uint64_t>(probe)));
    const Tensors ahead = gradient(moved(weights, v, h)), behind = gradient(moved(weights, v, -h));
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double part = v[i].to(at::kDouble)
                              .mul(ahead[i].to(at::kDouble) - behind[i].to(at::kDouble))
                              .sum()
                              .item<double>() /
                          (2 * h);
      result.layers[i] += part / n;
      sum += part;
    }
    result.trace += sum / n;
    squares += sum * sum / n;
  }
  const double variance = std::max(squares - result.trace * result.trace, 0.0);
  result.standard_error = probes > 1 ? std::sqrt(variance / (n - 1)) : 0;
  return result;
}

}  // namespace zsq::analysis
