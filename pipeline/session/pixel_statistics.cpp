// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/pixel_statistics.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_lstsq.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "models/execute.h"

namespace zsq::pipeline {
namespace {

constexpr std::size_t kLayers = 3;
constexpr double kDeadVariance = 1e-10, kMostOfLogarithm = 50;
// Of what the channels of a layer see of constant images, relative to the largest of it.
constexpr double kLinear = 1e-3;

struct Moments {
  at::Tensor mean, variance;  // f64 [channels], on the CPU
};

Moments moments_of(const at::Tensor& map) {
  const auto rows = map.to(at::kDouble).transpose(0, 1).flatten(1);
  const auto mean = rows.mean(1);
  return {mean.cpu(), rows.square().mean(1).sub(mean.square()).clamp_min(0).cpu()};
}

}  // namespace

PixelStatistics::PixelStatistics(const models::Model& model)
    : graph_(model.graph), parameters_(model.parameters) {
  models::NodeId last = -1;
  for (const auto& node : graph_.nodes) {
    if (!models::is<models::BatchNorm>(node) || layers_.size() == kLayers) continue;
    if (layers_.empty()) first_layer_ = node.name;
    const auto statistic = [&](const char* role) {
      return parameters_.at(node.params.at(role)).to(at::kCPU, at::kDouble);
    };
    layers_.push_back({statistic("mean"), statistic("variance")});
    taps_.push_back(node.inputs[0]);
    last = std::max(last, node.inputs[0]);
  }
  if (!any()) return;
  graph_.nodes.resize(static_cast<std::size_t>(last) + 1);
  graph_.output = last;
}

std::vector<at::Tensor> PixelStatistics::inputs_of_layers(const at::Tensor& images) const {
  const at::NoGradGuard no_grad;
  models::Taps taps{taps_, {}};
  models::execute(graph_, parameters_, images.to(parameters_.device()), &taps);
  return taps.values;
}

double PixelStatistics::loss(const at::Tensor& images) const {
  const auto inputs = inputs_of_layers(images);
  double sum = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& [mean, variance] = layers_[i];
    const Moments seen = moments_of(inputs[i]);
    const auto varies = variance.gt(kDeadVariance).logical_and(seen.variance.gt(kDeadVariance));
    const auto of = [&](const at::Tensor& channels) { return channels.masked_select(varies); };
    const auto spread = of(seen.variance).div(of(variance)).log().mul(0.5).square();
    const auto shift =
        of(seen.mean).sub(of(mean)).square().div(of(seen.variance).add(of(variance)));
    const auto all = spread.clamp_max(kMostOfLogarithm).add(shift);
    sum += all.numel() > 0 ? all.mean().item<double>() : kMostOfLogarithm;
  }
  return sum / static_cast<double>(layers_.size());
}

// Of the first BatchNorm's input to an image of one colour [C]: means over the places, f64 [K].
at::Tensor PixelStatistics::response(const at::Tensor& colour) const {
  const auto [channels, height, width] = graph_.input_shape;
  const auto image = colour.to(at::kFloat).view({1, channels, 1, 1});
  return moments_of(inputs_of_layers(image.expand({1, channels, height, width}).contiguous())[0])
      .mean;
}

std::optional<double> PixelStatistics::mean_pixel() const {
  const auto channels = graph_.input_shape[0];
  if (!any() || layers_[0].mean.numel() < channels) return std::nullopt;
  const auto all = at::ones({channels}, at::kDouble);
  const auto black = response(at::zeros({channels}, at::kDouble));
  std::vector<at::Tensor> columns;
  const auto units = at::eye(channels, at::kDouble);
  for (std::int64_t c = 0; c < channels; ++c) columns.push_back(response(units[c]).sub(black));
  const auto gains = at::stack(columns, 1);  // [K, C]
  const auto sum = gains.sum(1);
  const auto largest = [](const at::Tensor& x) { return x.abs().max().item<double>(); };
  const double size = std::max(largest(gains), 1e-12);
  if (largest(response(all).sub(black).sub(sum)) > kLinear * size ||
      largest(response(all.neg()).sub(black).add(sum)) > kLinear * size)
    return std::nullopt;
  const auto& [mean, variance] = layers_[0];
  const auto weight = variance.add(kDeadVariance).rsqrt().mul(variance.gt(kDeadVariance));
  // A little of a prior, that all channels are alike, where the filters do not tell them apart.
  const auto rows = gains.mul(weight.unsqueeze(1)), right = mean.sub(black).mul(weight);
  const double ridge = 1e-3 * largest(rows);
  const auto alike = units.sub(1.0 / static_cast<double>(channels)).mul(ridge);
  const auto found = std::get<0>(at::linalg_lstsq(
      at::cat({rows, alike}), at::cat({right, at::zeros({channels}, at::kDouble)}).unsqueeze(1)));
  const double pixel = found.mean().item<double>();
  return std::isfinite(pixel) ? std::optional(pixel) : std::nullopt;
}

PredictionSpread spread_of_predictions(const models::Model& model, const at::Tensor& images) {
  constexpr std::int64_t kFewestClasses = 8;
  const double none = std::numeric_limits<double>::quiet_NaN();
  const at::NoGradGuard no_grad;
  if (model.graph.signature.kind != models::OutputKind::logits || model.classes < kFewestClasses)
    return {none, none};
  const auto logits =
      models::execute(model.graph, model.parameters, images.to(model.parameters.device()));
  const auto probabilities = logits.flatten(1).to(at::kDouble).softmax(1);
  const double unit = std::log(static_cast<double>(probabilities.size(1)));
  const auto entropy = [&](const at::Tensor& p) {
    return p.mul(p.clamp_min(1e-300).log()).sum(-1).mean().item<double>() / -unit;
  };
  const double uncertainty = entropy(probabilities);
  return {uncertainty, entropy(probabilities.mean(0)) - uncertainty};
}

namespace {

// What the first node gives of which `wanted` holds; undefined without one.
at::Tensor output_of_first(const models::Model& model, const at::Tensor& images,
                           const std::function<bool(const models::Node&)>& wanted) {
  const at::NoGradGuard no_grad;
  models::Graph front = model.graph;
  const auto first = std::find_if(front.nodes.begin(), front.nodes.end(), wanted);
  if (first == front.nodes.end()) return {};
  front.nodes.erase(first + 1, front.nodes.end());
  front.output = static_cast<models::NodeId>(front.nodes.size()) - 1;
  return models::execute(front, model.parameters, images.to(model.parameters.device()));
}

}  // namespace

double one_sided_channels(const models::Model& model, const at::Tensor& images) {
  constexpr double kOneSign = 0.999;
  const auto map = output_of_first(
      model, images, [](const models::Node& node) { return models::is<models::Conv2d>(node); });
  if (!map.defined()) return std::numeric_limits<double>::quiet_NaN();
  const auto positive = map.gt(0).to(at::kDouble).transpose(0, 1).flatten(1).mean(1);
  const auto one_sign = positive.gt(kOneSign).logical_or(positive.lt(1 - kOneSign));
  return one_sign.to(at::kDouble).mean().item<double>();
}

double share_at_ceiling(const models::Model& model, const at::Tensor& images) {
  bool after_convolution = false;
  double ceiling = 0;
  const auto map = output_of_first(model, images, [&](const models::Node& node) {
    after_convolution |= models::is<models::Conv2d>(node);
    const auto* clip = std::get_if<models::Clip>(&node.op);
    if (!after_convolution || !clip || !std::isfinite(clip->hi) || clip->lo != 0) return false;
    ceiling = clip->hi;
    return true;
  });
  if (!map.defined()) return std::numeric_limits<double>::quiet_NaN();
  const auto count = [](const at::Tensor& which) {
    return static_cast<double>(which.sum().item<std::int64_t>());
  };
  return count(map.ge(ceiling)) / std::max(1.0, count(map.gt(0)));
}

}  // namespace zsq::pipeline
