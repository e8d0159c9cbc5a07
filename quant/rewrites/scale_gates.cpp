// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/scale_gates.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "models/execute.h"
#include "quant/data_free/linear_groups.h"

namespace zsq::quant {
namespace {

using models::Node;
using models::NodeId;

constexpr double kDeviations = 4;
constexpr double kBegins = -3, kLeast = 0.375;  // HardSwish is 0 below, and -0.375 at least
constexpr double kLeastGain = 1;                // bits
constexpr double kMostRatio = 1024;
constexpr std::size_t kMostReads = 64;

// A layer, and which of its input channels is the first of the tensor.
struct Read {
  NodeId layer;
  std::int64_t first;
};

// Bits that a channel loses on average where one scale serves all.
double lost_bits(const at::Tensor& width) {
  return width.max().div(width).log2().mean().item<double>();
}

class GateScaler {
 public:
  explicit GateScaler(models::Model model)
      : model_(std::move(model)),
        consumers_(model_.graph.consumers()),
        shapes_(models::infer_shapes(model_.graph, model_.parameters)),
        uses_(parameter_uses(model_.graph)) {}

  models::Model run() && {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i)
      if (models::is<models::HardSwish>(model_.graph.nodes[i])) scale(static_cast<NodeId>(i));
    return std::move(model_);
  }

 private:
  void scale(NodeId swish) {
    const NodeId norm = model_.graph[swish].inputs[0];
    const Node& before = model_.graph[norm];
    if (!models::is<models::BatchNorm>(before) || consumers_[norm].size() != 1 ||
        !is_own(before, "gamma", uses_) || !is_own(before, "beta", uses_) ||
        !model_.graph[swish].params.empty())
      return;
    reads_.clear();
    scaled_.clear();
    if (!collect(swish, 0) || reads_.empty() || !products_have_one_factor()) return;
    const auto factor = factor_of(norm);
    if (!factor.defined()) return;
    for (const char* role : {"gamma", "beta"}) {
      auto& value = model_.parameters.at(before.params.at(role));
      value = value.div(factor);
    }
    set_own(model_, swish, "scale", factor.view({-1, 1, 1}));
    for (const Read& read : reads_) put_in(read, factor);
  }

  // Every layer that reads the tensor, whose channels begin at `first` of what it reads.
  bool collect(NodeId tensor, std::int64_t first) {
    if (tensor == model_.graph.output || reads_.size() > kMostReads) return false;
    scaled_.insert(tensor);
    const auto& readers = consumers_[static_cast<std::size_t>(tensor)];
    return std::all_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return can_read(reader, tensor, first); });
  }

  bool can_read(NodeId reader, NodeId tensor, std::int64_t first) {
    const Node& node = model_.graph[reader];
    if (models::is<models::Conv2d>(node) || models::is<models::Linear>(node)) {
      if (node.inputs[0] != tensor || !can_put_in(reader)) return false;
      reads_.push_back({reader, first});
      return true;
    }
    if (const auto* concat = models::get_if<models::Concat>(node)) {
      if (concat->axis != 1 || std::ranges::count(node.inputs, tensor) != 1) return false;
      for (const NodeId input : node.inputs) {
        if (input == tensor) break;
        first += shape(input)[1];
      }
      return collect(reader, first);
    }
    return passes(node, tensor) && collect(reader, first);
  }

  bool passes(const Node& node, NodeId tensor) const {
    const auto* pad = models::get_if<models::Pad>(node);
    const bool flattens = models::is<models::Flatten>(node) && shape(tensor).size() == 4 &&
                          shape(tensor)[2] == 1 && shape(tensor)[3] == 1;
    return flattens || models::is<models::MaxPool>(node) || models::is<models::AvgPool>(node) ||
           models::is<models::GlobalAvgPool>(node) || models::is<models::Resize>(node) ||
           models::is<models::Interpolate>(node) || models::is<models::Mul>(node) ||
           (pad && pad->value == 0 && pad->before[1] == 0 && pad->after[1] == 0);
  }

  // x' y' would have the factor twice.
  bool products_have_one_factor() const {
    return std::ranges::all_of(scaled_, [&](NodeId id) {
      const Node& node = model_.graph[id];
      return !models::is<models::Mul>(node) ||
             scaled_.contains(node.inputs[0]) != scaled_.contains(node.inputs[1]);
    });
  }

  bool can_put_in(NodeId layer) const {
    const Node& node = model_.graph[layer];
    if (models::is<models::Linear>(node))
      return shape(node.inputs[0]).size() == 2 && is_own(node, "weight", uses_);
    return can_undo_scaling(model_, layer, uses_);
  }

  void put_in(const Read& read, const at::Tensor& factor) {
    const Node& node = model_.graph[read.layer];
    const bool rows = models::is<models::Conv2d>(node) && is_depthwise(model_, read.layer);
    auto& weight = model_.parameters.at(node.params.at("weight"));
    weight = weight.clone();
    std::vector<std::int64_t> by_channel(static_cast<std::size_t>(weight.dim()), 1);
    by_channel[rows ? 0 : 1] = -1;
    weight.narrow(rows ? 0 : 1, read.first, factor.numel()).mul_(factor.view(by_channel));
  }

  // Undefined where it gains too little.
  at::Tensor factor_of(NodeId norm) const {
    const auto& params = model_.graph[norm].params;
    const auto& mean = model_.parameters.at(params.at("beta"));
    const auto reach = model_.parameters.at(params.at("gamma")).abs().mul(kDeviations);
    const auto above = mean.add(reach).clamp_min(0);
    const auto below = mean.sub(reach).clamp(kBegins, 0);
    const auto least = above.max().div(kMostRatio).clamp_min(1e-6);
    const auto x = above.sub(below).maximum(least);
    const auto y = above.sub(below.clamp_min(-kLeast)).maximum(least);
    const auto factor = x.mul(y).sqrt();
    const double gain =
        lost_bits(x) + lost_bits(y) - lost_bits(x.div(factor)) - lost_bits(y.div(factor));
    return gain < kLeastGain ? at::Tensor() : factor.div(factor.max());
  }

  const models::Shape& shape(NodeId id) const { return shapes_[static_cast<std::size_t>(id)]; }

  models::Model model_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<models::Shape> shapes_;
  ParameterUses uses_;
  std::vector<Read> reads_;
  std::set<NodeId> scaled_;
};

}  // namespace

models::Model scale_gates(models::Model model) { return GateScaler(std::move(model)).run(); }

}  // namespace zsq::quant
