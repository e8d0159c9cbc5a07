// SPDX-License-Identifier: Apache-2.0
#include "quant/equalize.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include <cmath>

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

bool is_relu(const Node& node) {
  const auto* clip = models::get_if<models::Clip>(node);
  return models::is<models::LeakyRelu>(node) || (clip && clip->lo == 0 && std::isinf(clip->hi));
}

bool scales_through(const Node& node) {
  const auto* pad = models::get_if<models::Pad>(node);
  return is_relu(node) || models::is<models::MaxPool>(node) || models::is<models::AvgPool>(node) ||
         (pad && pad->value == 0 && pad->before[1] == 0 && pad->after[1] == 0);
}

class Equalizer {
 public:
  explicit Equalizer(models::Model model)
      : model_(std::move(model)), consumers_(model_.graph.consumers()) {
    for (const auto& node : model_.graph.nodes)
      for (const auto& [role, name] : node.params) ++uses_[name];
  }

  models::Model run() && {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (!models::is<models::BatchNorm>(model_.graph[id])) continue;
      const NodeId reader = reader_of(id);
      if (reader >= 0) balance(model_.graph[id], model_.graph[reader]);
    }
    return std::move(model_);
  }

 private:
  // The convolution that alone reads the node through operators that a factor passes; -1: none.
  NodeId reader_of(NodeId id) const {
    const Graph& graph = model_.graph;
    for (bool relu = false; id != graph.output && consumers_[id].size() == 1;) {
      id = consumers_[id][0];
      relu = relu || is_relu(graph[id]);
      if (models::is<models::Conv2d>(graph[id])) return relu ? id : -1;
      if (!scales_through(graph[id])) return -1;
    }
    return -1;
  }

  bool is_own(const Node& node, const char* role) const {
    const auto found = node.params.find(role);
    return found != node.params.end() && uses_.at(found->second) == 1;
  }

  void balance(const Node& norm, const Node& layer) {
    if (!is_own(norm, "gamma") || !is_own(norm, "beta") || !is_own(layer, "weight")) return;
    auto& gamma = model_.parameters.at(norm.params.at("gamma"));
    auto& beta = model_.parameters.at(norm.params.at("beta"));
    auto& weight = model_.parameters.at(layer.params.at("weight"));
    const auto groups = models::get_if<models::Conv2d>(layer)->groups;
    const bool depthwise = groups == gamma.numel() && weight.size(1) == 1;
    if (groups != 1 && !depthwise) return;
    const auto reach = beta.add(gamma.abs(), 4);
    const auto largest = depthwise ? at::ones_like(reach) : weight.abs().amax({0, 2, 3});
    auto exponent = largest.div(reach).log2().mul(0.5).round().clamp(-kMost, kMost);
    // A channel that is always 0, or that nothing reads.
    exponent = at::where(reach.gt(0).logical_and(largest.gt(0)), exponent, 0);
    const auto factor = exponent.exp2();
    gamma = gamma.mul(factor);
    beta = beta.mul(factor);
    std::vector<std::int64_t> shape{1, 1, 1, 1};
    shape[depthwise ? 0 : 1] = -1;
    weight = weight.div(factor.view(shape));
  }

  static constexpr double kMost = 10;

  models::Model model_;
  std::vector<std::vector<NodeId>> consumers_;
  std::map<std::string, int> uses_;
};

}  // namespace

models::Model equalize(models::Model model) { return Equalizer(std::move(model)).run(); }

}  // namespace zsq::quant
