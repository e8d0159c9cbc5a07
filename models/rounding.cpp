// SPDX-License-Identifier: Apache-2.0
#include "models/rounding.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "models/execute.h"
#include "models/file_layout.h"

namespace zsq::models {

bool Rounding::explains(double tolerance) const {
  constexpr double kFactor = 4, kLargest = 0.1;
  return here < kLargest && there <= kFactor * here + tolerance;
}

double relative_distance(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  const auto x = a.to(at::kDouble).flatten(), y = b.to(at::kDouble).flatten();
  return (x - y).abs().max().item<double>() / std::max(y.abs().max().item<double>(), 1e-30);
}

std::optional<Rounding> measure_rounding(const Model& model, const at::Tensor& input,
                                         const at::Tensor& output, const at::Tensor& expected,
                                         std::size_t index) {
  for (const auto& node : model.graph.nodes) {
    if (is<Custom>(node)) return std::nullopt;
  }
  const at::NoGradGuard no_grad;
  ParameterStore parameters;
  for (const auto& name : model.parameters.names()) {
    const auto& value = model.parameters.at(name);
    parameters.set(name, value.is_floating_point() ? value.to(at::kCPU, at::kDouble) : value);
  }
  const auto row = execute(model.graph, parameters, input.to(at::kCPU, at::kDouble));
  const auto exact = as_file_outputs(model.graph, row).at(index).value;
  return Rounding{relative_distance(output, exact), relative_distance(expected, exact)};
}

}  // namespace zsq::models
