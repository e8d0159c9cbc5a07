// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/scale_gates.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "models/execute.h"
#include "quant/data_free/linear_groups.h"

namespace zsq::quant {
namespace {

using models::Node;
using models::NodeId;

constexpr double kDeviations = 4;
constexpr double kLeastGain = 1;  // bits
constexpr double kMostRatio = 1024;
constexpr std::size_t kMostReads = 64;

// A layer, and which of its input channels is the first of the tensor.
struct Read {
  NodeId layer;
  std::int64_t first;
};

// y = x h(x) of the output x of a BatchNorm.
struct Gated {
  NodeId y, gate;        // where h is computed; HardSwish: y
  double begins, least;  // below which x y is 0, or nearly so, and the least y
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
      if (has_own_scale(static_cast<NodeId>(i)))
        if (const auto gated = gated_by(static_cast<NodeId>(i)))
          scale(static_cast<NodeId>(i), *gated);
    put_factors_before_sigmoids();
    return std::move(model_);
  }

 private:
  bool has_own_scale(NodeId norm) const {
    const Node& node = model_.graph[norm];
    return models::is<models::BatchNorm>(node) && is_own(node, "gamma", uses_) &&
           is_own(node, "beta", uses_);
  }

  std::optional<Gated> gated_by(NodeId norm) const {
    const auto& readers = consumers_[norm];
    if (readers.size() == 1 && models::is<models::HardSwish>(model_.graph[readers[0]]) &&
        model_.graph[readers[0]].params.empty())
      return Gated{readers[0], readers[0], -3, 0.375};
    // Dead leaves tell the widths of channels badly: where a detector's scores are near 0 on them,
    // factors from them cost a fifth of its boxes at 8 bits.
    if (readers.size() != 2 || model_.statistics_of_images) return {};
    for (const auto& [gate, y] : {std::pair{readers[0], readers[1]}, {readers[1], readers[0]}})
      if (models::is<models::Sigmoid>(model_.graph[gate]) &&
          models::is<models::Mul>(model_.graph[y]) && consumers_[gate] == std::vector{y})
        return Gated{y, gate, -6, 0.2785};
    return {};
  }

  void scale(NodeId norm, const Gated& gated) {
    reads_.clear();
    summands_.clear();
    scaled_ = {norm};
    if (!collect(gated.y, 0) || reads_.empty() || !products_have_one_factor()) return;
    const auto factor = factor_of(norm, gated);
    if (!factor.defined()) return;
    divide(norm, factor);
    for (const NodeId summand : summands_) divide(summand, factor);
    if (gated.gate == gated.y)
      set_own(model_, gated.y, "scale", factor.view({-1, 1, 1}));
    else
      factors_[gated.gate] = factor.view({1, -1, 1, 1});
    for (const Read& read : reads_) put_in(read, factor);
  }

  void divide(NodeId norm, const at::Tensor& factor) {
    for (const char* role : {"gamma", "beta"}) {
      auto& value = model_.parameters.at(model_.graph[norm].params.at(role));
      value = value.div(factor);
    }
  }

  // sigmoid(s x) of x / s.
  void put_factors_before_sigmoids() {
    if (factors_.empty()) return;
    models::Graph graph = model_.graph;
    graph.nodes.clear();
    std::vector<NodeId> ids;
    for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      Node node = model_.graph.nodes[i];
      for (NodeId& input : node.inputs) input = ids[static_cast<std::size_t>(input)];
      if (const auto found = factors_.find(static_cast<NodeId>(i)); found != factors_.end()) {
        const std::string name = node.name + ".scale";
        model_.parameters.set(name, found->second);
        const NodeId factor = graph.add({name, models::Parameter{}, {}, {{"value", name}}});
        node.inputs[0] =
            graph.add({node.name + ".scaled", models::Mul{}, {node.inputs[0], factor}});
      }
      ids.push_back(graph.add(std::move(node)));
    }
    graph.input = ids[static_cast<std::size_t>(graph.input)];
    graph.output = ids[static_cast<std::size_t>(graph.output)];
    model_.graph = std::move(graph);
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
    if (models::is<models::Add>(node)) return can_add(node, tensor) && collect(reader, first);
    return passes(node, tensor) && collect(reader, first);
  }

  // What is added gets the factor as well.
  bool can_add(const Node& sum, NodeId tensor) {
    const NodeId other = sum.inputs[sum.inputs[0] == tensor ? 1 : 0];
    if (other == tensor || shape(other) != shape(tensor) || !has_own_scale(other) ||
        consumers_[other].size() != 1 || shape(*scaled_.begin())[1] != shape(tensor)[1])
      return false;
    summands_.push_back(other);
    return true;
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

  // The least and the largest value, with 0 between them.
  std::pair<at::Tensor, at::Tensor> reach_of(NodeId norm) const {
    const auto& params = model_.graph[norm].params;
    const auto& mean = model_.parameters.at(params.at("beta"));
    const auto reach = model_.parameters.at(params.at("gamma")).abs().mul(kDeviations);
    return {mean.sub(reach).clamp_max(0), mean.add(reach).clamp_min(0)};
  }

  // Undefined where it gains too little.
  at::Tensor factor_of(NodeId norm, const Gated& gated) const {
    const auto [lowest, above] = reach_of(norm);
    const auto below = lowest.clamp_min(gated.begins);
    const auto least = above.max().div(kMostRatio).clamp_min(1e-6);
    const auto x = above.sub(below).maximum(least);
    const auto y = above.sub(below.clamp_min(-gated.least)).maximum(least);
    const auto factor = x.mul(y).sqrt();
    double gain = 0;
    const auto compare = [&](const at::Tensor& width) {
      gain += lost_bits(width) - lost_bits(width.div(factor));
    };
    compare(x);
    compare(y);
    for (const NodeId summand : summands_) {
      const auto [lo, hi] = reach_of(summand);
      compare(hi.sub(lo).clamp_min(1e-6));
    }
    return gain < kLeastGain ? at::Tensor() : factor.div(factor.max());
  }

  const models::Shape& shape(NodeId id) const { return shapes_[static_cast<std::size_t>(id)]; }

  models::Model model_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<models::Shape> shapes_;
  ParameterUses uses_;
  std::vector<Read> reads_;
  std::vector<NodeId> summands_;          // outputs of BatchNorm that are added to what is scaled
  std::set<NodeId> scaled_;               // the BatchNorm and what has the factor after it
  std::map<NodeId, at::Tensor> factors_;  // of sigmoids
};

}  // namespace

models::Model scale_gates(models::Model model) { return GateScaler(std::move(model)).run(); }

}  // namespace zsq::quant
