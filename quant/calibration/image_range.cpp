// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/image_range.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <vector>

#include "models/execute.h"
#include "quant/student.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

// Whether each element of the output is one of the inputs' or lies between some of them, or is
// padded.
bool keeps_between(const Node& node) {
  const auto* interpolated = models::get_if<models::Interpolate>(node);
  return models::is<models::Reshape>(node) || models::is<models::Transpose>(node) ||
         models::is<models::Slice>(node) || models::is<models::Concat>(node) ||
         models::is<models::Expand>(node) || models::is<models::Resize>(node) ||
         models::is<models::Pad>(node) ||
         (interpolated && interpolated->mode != models::InterpolationMode::cubic);
}

// In its first input, of two.
bool is_linear(const Node& node) {
  const auto* binary = models::get_if<models::Binary>(node);
  return models::is<models::Add>(node) || models::is<models::Mul>(node) ||
         (binary &&
          (binary->kind == models::BinaryKind::sub || binary->kind == models::BinaryKind::div));
}

}  // namespace

PixelRanges::PixelRanges(const Graph& graph, const models::ParameterStore& parameters, double lo,
                         double hi)
    : graph_(graph), parameters_(parameters) {
  const auto [channels, height, width] = graph.input_shape;
  const auto of_pixels = [&](double value) {
    return at::full({1, channels, height, width}, value,
                    at::TensorOptions(at::kFloat).device(parameters.device()));
  };
  known_[graph.input] = {of_pixels(lo), of_pixels(hi)};
}

std::optional<std::pair<double, double>> PixelRanges::range(NodeId node) {
  const at::NoGradGuard no_grad;
  const auto found = bounds(node);
  if (!found || found->is_constant) return std::nullopt;
  return std::pair{found->least.min().item<double>(), found->largest.max().item<double>()};
}

std::optional<PixelRanges::Bounds> PixelRanges::bounds(NodeId id) {
  if (const auto found = known_.find(id); found != known_.end()) return found->second;
  return known_[id] = computed(graph_[id]);
}

std::optional<PixelRanges::Bounds> PixelRanges::computed(const Node& node) {
  if (activation_quantizer(node)) return bounds(node.inputs[0]);
  if (models::is<models::Parameter>(node)) {
    const auto value = models::execute_node(node, {}, parameters_);
    return Bounds{value, value, /*is_constant=*/true};
  }
  if (!is_linear(node) && !keeps_between(node)) return std::nullopt;
  std::vector<at::Tensor> least, largest;
  std::vector<NodeId> of_pixels;
  for (const NodeId input : node.inputs) {
    const auto found = bounds(input);
    if (!found) return std::nullopt;
    if (!found->is_constant) of_pixels.push_back(input);
    least.push_back(found->least);
    largest.push_back(found->largest);
  }
  const bool divides_by_pixels =
      models::is<models::Binary>(node) && of_pixels != std::vector{node.inputs[0]};
  if (is_linear(node) && (of_pixels.size() > 1 || divides_by_pixels)) return std::nullopt;
  const auto a = models::execute_node(node, least, parameters_);
  const auto b = models::execute_node(node, largest, parameters_);
  return Bounds{at::minimum(a, b), at::maximum(a, b), of_pixels.empty()};
}

}  // namespace zsq::quant
