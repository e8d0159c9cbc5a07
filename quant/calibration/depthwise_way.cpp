// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/depthwise_way.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <optional>

#include "quant/data_free/linear_groups.h"

namespace zsq::quant {
namespace {

using models::NodeId;

class Ways {
 public:
  explicit Ways(const models::Model& model)
      : model_(model), consumers_(model.graph.consumers()), uses_(parameter_uses(model.graph)) {}

  std::vector<DepthwiseWay> find() const {
    std::vector<DepthwiseWay> ways;
    for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i)
      if (const auto way = way_through(static_cast<NodeId>(i))) ways.push_back(*way);
    return ways;
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

  std::optional<DepthwiseWay> way_through(NodeId id) const {
    DepthwiseWay way;
    way.depthwise = id;
    if (!own_convolution(id) || !is_depthwise(model_, id) || !read_once(id)) return std::nullopt;
    way.first_clip = node(id).inputs[0];
    if (const auto* pad = models::get_if<models::Pad>(node(way.first_clip))) {
      if (pad->value != 0 || !read_once(way.first_clip)) return std::nullopt;
      way.first_clip = node(way.first_clip).inputs[0];
    }
    if (!bounded_relu(way.first_clip) || !read_once(way.first_clip)) return std::nullopt;
    way.first_norm = node(way.first_clip).inputs[0];
    if (!own_norm(way.first_norm) || !read_once(way.first_norm)) return std::nullopt;
    way.maker = node(way.first_norm).inputs[0];
    if (!dense(way.maker) || !read_once(way.maker)) return std::nullopt;
    way.second_norm = consumers_[id][0];
    if (!own_norm(way.second_norm) || !read_once(way.second_norm)) return std::nullopt;
    way.second_clip = consumers_[way.second_norm][0];
    if (!bounded_relu(way.second_clip) || !read_once(way.second_clip)) return std::nullopt;
    way.reader = consumers_[way.second_clip][0];
    if (!pointwise(way.reader) || !read_once(way.reader)) return std::nullopt;
    way.reader_norm = consumers_[way.reader][0];
    return own_norm(way.reader_norm) ? std::optional(way) : std::nullopt;
  }

  const models::Model& model_;
  std::vector<std::vector<NodeId>> consumers_;
  ParameterUses uses_;
};

}  // namespace

std::vector<DepthwiseWay> find_depthwise_ways(const models::Model& model) {
  return Ways(model).find();
}

void append_channels(models::Model& model, const DepthwiseWay& way, std::int64_t count) {
  const auto append = [&](NodeId id, const char* role, std::int64_t dim) {
    auto& x = model.parameters.at(model.graph[id].params.at(role));
    auto shape = x.sizes().vec();
    shape[static_cast<std::size_t>(dim)] = count;
    x = at::cat({x, at::zeros(shape, x.options())}, dim);
  };
  for (const NodeId id : {way.maker, way.depthwise}) append(id, "weight", 0);
  for (const NodeId id : {way.first_norm, way.second_norm})
    for (const char* role : {"gamma", "beta", "mean", "variance"}) append(id, role, 0);
  append(way.reader, "weight", 1);
  std::get<models::Conv2d>(model.graph[way.depthwise].op).groups += count;
}

}  // namespace zsq::quant
