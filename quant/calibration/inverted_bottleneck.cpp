// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/inverted_bottleneck.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <optional>

#include "quant/data_free/linear_groups.h"

namespace zsq::quant {
namespace {

using models::NodeId;

class Finder {
 public:
  explicit Finder(const models::Model& model)
      : model_(model), consumers_(model.graph.consumers()), uses_(parameter_uses(model.graph)) {}

  std::vector<InvertedBottleneck> find() const {
    std::vector<InvertedBottleneck> blocks;
    for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i)
      if (const auto block = around(static_cast<NodeId>(i))) blocks.push_back(*block);
    return blocks;
  }

 private:
  const models::Node& node(NodeId id) const { return model_.graph[id]; }
  bool read_once(NodeId id) const {
    return id != model_.graph.output && consumers_[id].size() == 1;
  }
  bool own_convolution(NodeId id) const {
    return models::is<models::Conv2d>(node(id)) && is_own(node(id), "weight", uses_) &&
           !node(id).params.contains("bias");
  }
  bool own_norm(NodeId id) const {
    if (!models::is<models::BatchNorm>(node(id))) return false;
    for (const char* role : {"gamma", "beta", "mean", "variance"})
      if (!is_own(node(id), role, uses_)) return false;
    return true;
  }
  bool dense(NodeId id) const {
    return own_convolution(id) && models::get_if<models::Conv2d>(node(id))->groups == 1;
  }
  bool pointwise(NodeId id) const {
    if (!dense(id)) return false;
    const auto& weight = model_.parameters.at(node(id).params.at("weight"));
    return weight.size(2) == 1 && weight.size(3) == 1 &&
           models::get_if<models::Conv2d>(node(id))->pads == models::Pads{};
  }
  bool bounded_relu(NodeId id) const {
    const auto* clip = models::get_if<models::Clip>(node(id));
    return clip && clip->lo == 0 && std::isfinite(clip->hi) && node(id).params.empty();
  }

  std::optional<InvertedBottleneck> around(NodeId id) const {
    InvertedBottleneck block;
    block.depthwise = id;
    if (!own_convolution(id) || !is_depthwise(model_, id) || !read_once(id)) return std::nullopt;
    block.first_clip = node(id).inputs[0];
    if (const auto* pad = models::get_if<models::Pad>(node(block.first_clip))) {
      if (pad->value != 0 || !read_once(block.first_clip)) return std::nullopt;
      block.first_clip = node(block.first_clip).inputs[0];
    }
    if (!bounded_relu(block.first_clip) || !read_once(block.first_clip)) return std::nullopt;
    block.first_norm = node(block.first_clip).inputs[0];
    if (!own_norm(block.first_norm) || !read_once(block.first_norm)) return std::nullopt;
    block.expand = node(block.first_norm).inputs[0];
    if (!dense(block.expand) || !read_once(block.expand)) return std::nullopt;
    block.second_norm = consumers_[id][0];
    if (!own_norm(block.second_norm) || !read_once(block.second_norm)) return std::nullopt;
    block.second_clip = consumers_[block.second_norm][0];
    if (!bounded_relu(block.second_clip) || !read_once(block.second_clip)) return std::nullopt;
    block.project = consumers_[block.second_clip][0];
    if (!pointwise(block.project) || !read_once(block.project)) return std::nullopt;
    block.project_norm = consumers_[block.project][0];
    return own_norm(block.project_norm) ? std::optional(block) : std::nullopt;
  }

  const models::Model& model_;
  std::vector<std::vector<NodeId>> consumers_;
  ParameterUses uses_;
};

}  // namespace

std::vector<InvertedBottleneck> find_inverted_bottlenecks(const models::Model& model) {
  return Finder(model).find();
}

void append_channels(models::Model& model, const InvertedBottleneck& block, std::int64_t count) {
  const auto append = [&](NodeId id, const char* role, std::int64_t dim) {
    auto& x = model.parameters.at(model.graph[id].params.at(role));
    auto shape = x.sizes().vec();
    shape[static_cast<std::size_t>(dim)] = count;
    x = at::cat({x, at::zeros(shape, x.options())}, dim);
  };
  for (const NodeId id : {block.expand, block.depthwise}) append(id, "weight", 0);
  for (const NodeId id : {block.first_norm, block.second_norm})
    for (const char* role : {"gamma", "beta", "mean", "variance"}) append(id, role, 0);
  append(block.project, "weight", 1);
  std::get<models::Conv2d>(model.graph[block.depthwise].op).groups += count;
}

}  // namespace zsq::quant
