// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/equalize.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "quant/data_free/channel_ranges.h"
#include "quant/data_free/linear_groups.h"
#include "quant/placement.h"
#include "quant/rewrites/merge_branches.h"
#include "quant/rewrites/scale_gates.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

constexpr double kReach = 4, kReachBelowBound = 8;  // deviations
constexpr double kShareOfRange = 0.75;  // of linear layers; chosen by KL on synthetic images
constexpr double kMostScaling = 1024;   // f and 1 / f

bool is_relu(const Node& node) {
  const auto* clip = models::get_if<models::Clip>(node);
  return models::is<models::LeakyRelu>(node) || models::is<models::PRelu>(node) ||
         (clip && clip->lo == 0);
}

double bound_of(const Node& node) {
  const auto* clip = models::get_if<models::Clip>(node);
  return clip ? clip->hi : std::numeric_limits<double>::infinity();
}

bool scales_through(const Node& node) {
  const auto* pad = models::get_if<models::Pad>(node);
  return is_relu(node) || models::is<models::MaxPool>(node) || models::is<models::AvgPool>(node) ||
         (pad && pad->value == 0 && pad->before[1] == 0 && pad->after[1] == 0);
}

at::Tensor power_of_two(const at::Tensor& x) { return x.log2().round().exp2(); }

// What matters is how channels compare.
at::Tensor log_ratio(const at::Tensor& x) {
  const auto log = x.clamp_min(1e-9).log();
  return log.sub(log.mean());
}

// A convolution that reads a tensor, and the last ReLU6 or the like on the way.
struct Reader {
  NodeId layer = -1, clip = -1;
};

class Equalizer {
 public:
  Equalizer(models::Model model, const QuantOptions& options)
      : model_(std::move(model)),
        options_(options),
        placement_(place(model_.graph, options)),
        consumers_(model_.graph.consumers()),
        uses_(parameter_uses(model_.graph)) {}

  models::Model run() && {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (!models::is<models::BatchNorm>(model_.graph[id])) continue;
      if (const auto reader = reader_behind_relu(id)) balance(id, *reader);
    }
    if (options_.equalize == Equalization::depthwise) return std::move(model_);
    for (const auto& group : linear_groups(model_)) balance(group);
    return std::move(model_);
  }

 private:
  std::optional<Reader> reader_behind_relu(NodeId id) const {
    const Graph& graph = model_.graph;
    Reader reader;
    for (bool relu = false; id != graph.output && consumers_[id].size() == 1;) {
      id = consumers_[id][0];
      relu = relu || is_relu(graph[id]);
      if (std::isfinite(bound_of(graph[id]))) reader.clip = id;
      reader.layer = id;
      if (models::is<models::Conv2d>(graph[id])) return relu ? std::optional(reader) : std::nullopt;
      if (!scales_through(graph[id])) return std::nullopt;
      // Quantizers end at the bound only where they see what is clipped, not an average of it.
      if (reader.clip >= 0 && models::is<models::AvgPool>(graph[id])) return std::nullopt;
    }
    return std::nullopt;
  }

  bool can_scale(NodeId norm) const {
    return is_own(model_.graph[norm], "gamma", uses_) && is_own(model_.graph[norm], "beta", uses_);
  }
  at::Tensor& param(NodeId node, const char* role) {
    return model_.parameters.at(model_.graph[node].params.at(role));
  }
  const at::Tensor& param(NodeId node, const char* role) const {
    return model_.parameters.at(model_.graph[node].params.at(role));
  }

  // Per channel that it reads; of a depthwise convolution, which has a scale for each, 1.
  at::Tensor largest_weight(NodeId layer) const {
    const auto& weight = param(layer, "weight");
    return is_depthwise(model_, layer) ? at::ones({weight.size(0)}, weight.options())
                                       : weight.abs().amax({0, 2, 3});
  }

  void scale(NodeId norm, const at::Tensor& factor) {
    for (const char* role : {"gamma", "beta"}) param(norm, role) = param(norm, role).mul(factor);
  }
  void take_out(NodeId layer, const at::Tensor& factor) {
    std::vector<std::int64_t> shape{1, 1, 1, 1};
    shape[is_depthwise(model_, layer) ? 0 : 1] = -1;
    param(layer, "weight") = param(layer, "weight").div(factor.view(shape));
  }

  void balance(NodeId norm, const Reader& reader) {
    if (!can_scale(norm) || !can_undo_scaling(model_, reader.layer, uses_)) return;
    const bool depthwise = is_depthwise(model_, reader.layer), bounded = reader.clip >= 0;
    if (bounded) return balance_below_bound(norm, reader);
    if (!depthwise && options_.equalize != Equalization::all) return;
    const auto reach = param(norm, "beta").add(param(norm, "gamma").abs(), kReach);
    const auto largest = largest_weight(reader.layer);
    auto factor = power_of_two(depthwise ? reach.reciprocal() : largest.div(reach).sqrt());
    // A channel that is always 0, or that nothing reads.
    factor = at::where(reach.gt(0).logical_and(largest.gt(0)), factor, 1)
                 .clamp(1 / kMostScaling, kMostScaling);
    scale(norm, factor);
    take_out(reader.layer, factor);
  }

  void balance_below_bound(NodeId norm, const Reader& reader) {
    if (!is_depthwise(model_, reader.layer)) return;
    const models::Node& clip = model_.graph[reader.clip];
    const double bound = bound_of(clip);
    const auto &beta = param(norm, "beta"), deviation = param(norm, "gamma").abs();
    const bool own_range = options_.equalize == Equalization::depthwise;
    auto range = own_range
                     ? channel_ranges(beta, deviation, bound, placement_.input_bits[reader.layer])
                     : beta.add(deviation, kReachBelowBound);
    range = at::where(range.gt(0), range, bound);  // a channel that is always 0
    const auto factor = range.reciprocal().mul(bound).clamp(1, kMostScaling);
    scale(norm, factor);
    take_out(reader.layer, factor);
    if (!own_range) return;  // no value comes to the bound that did not
    const auto by_channel = factor.view({1, -1, 1, 1});
    if (!clip.params.contains("upper"))
      set_own(model_, reader.clip, "upper", by_channel.mul(bound));
    else
      for (const char* role : {"lower", "upper"})
        set_own(model_, reader.clip, role, param(reader.clip, role).mul(by_channel));
  }

  // |mean| + 4 deviations of sums of independent BatchNorm outputs.
  at::Tensor reach_of(NodeId id) const {
    const auto [mean, variance] = implied_moments(model_, id);
    return mean.abs().add(variance.sqrt(), kReach);
  }

  void balance(const LinearGroup& group) {
    at::Tensor exponent;
    for (std::size_t i = 0; i < group.layers.size(); ++i) {
      const auto one = log_ratio(largest_weight(group.layers[i]))
                           .mul(1 - kShareOfRange)
                           .sub(log_ratio(reach_of(group.read[i])), kShareOfRange);
      exponent = exponent.defined() ? exponent.add(one) : one;
    }
    const auto factor = exponent.div(static_cast<double>(group.layers.size()))
                            .exp()
                            .clamp(1 / kMostScaling, kMostScaling);
    for (NodeId norm : group.norms) scale(norm, factor);
    for (NodeId layer : group.layers) take_out(layer, factor);
  }

  models::Model model_;
  const QuantOptions& options_;
  Placement placement_;
  std::vector<std::vector<NodeId>> consumers_;
  ParameterUses uses_;
};

}  // namespace

models::Model equalize(models::Model model, const QuantOptions& options) {
  if (options.mode == Mode::deploy) model = merge_branches(std::move(model));
  if (options.mode == Mode::deploy && target_rules(options.target).hard_swish_is_product)
    model = scale_gates(std::move(model));
  const auto which = options.equalize;
  const bool eight = std::min(options.weights.num_bits, options.activations.num_bits) >= 8;
  if (which == Equalization::none || (which != Equalization::all && eight)) return model;
  return Equalizer(std::move(model), options).run();
}

}  // namespace zsq::quant
