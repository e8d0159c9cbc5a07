// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/split_channels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "core/seed.h"
#include "models/execute.h"
#include "quant/data_free/channel_ranges.h"
#include "quant/data_free/linear_groups.h"
#include "quant/placement.h"

namespace zsq::quant {
namespace {

using models::NodeId;

// A channel whose BatchNorm implies values above 0 at less than one place in a hundred.
constexpr double kDeadDeviations = 2.5;
constexpr std::int64_t kFineBits = 8;

// From the convolution that makes a depthwise one's channels to the BatchNorm behind their reader.
struct Way {
  NodeId maker = -1, first_norm = -1, clip = -1, depthwise = -1, second_norm = -1, reader = -1,
         reader_norm = -1;
  double bound = 0, second_bound = 0;  // of the ReLU6 before and behind the depthwise convolution
};

class Ways {
 public:
  explicit Ways(const models::Model& model)
      : model_(model), consumers_(model.graph.consumers()), uses_(parameter_uses(model.graph)) {}

  std::vector<Way> find() const {
    std::vector<Way> ways;
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
  std::optional<double> relu_bound(NodeId id) const {
    const auto* clip = models::get_if<models::Clip>(node(id));
    if (!clip || clip->lo != 0 || node(id).params.contains("upper")) return std::nullopt;
    return clip->hi;
  }

  std::optional<Way> way_through(NodeId id) const {
    Way way;
    way.depthwise = id;
    if (!own_convolution(id) || !is_depthwise(model_, id)) return std::nullopt;
    NodeId before = node(id).inputs[0];
    if (const auto* pad = models::get_if<models::Pad>(node(before)); pad && read_once(before)) {
      if (pad->value != 0) return std::nullopt;
      before = node(before).inputs[0];
    }
    const auto bound = relu_bound(before);
    if (!bound || !std::isfinite(*bound) || !read_once(before)) return std::nullopt;
    way.clip = before;
    way.bound = *bound;
    way.first_norm = node(before).inputs[0];
    if (!own_norm(way.first_norm) || !read_once(way.first_norm)) return std::nullopt;
    way.maker = node(way.first_norm).inputs[0];
    if (!dense(way.maker) || !read_once(way.maker) || !read_once(id)) return std::nullopt;
    way.second_norm = consumers_[id][0];
    if (!own_norm(way.second_norm) || !read_once(way.second_norm)) return std::nullopt;
    const NodeId second_clip = consumers_[way.second_norm][0];
    const auto second_bound = relu_bound(second_clip);
    if (!second_bound || !read_once(second_clip)) return std::nullopt;
    way.second_bound = *second_bound;
    way.reader = consumers_[second_clip][0];
    if (!pointwise(way.reader) || !read_once(way.reader)) return std::nullopt;
    way.reader_norm = consumers_[way.reader][0];
    if (!own_norm(way.reader_norm)) return std::nullopt;
    return way;
  }

  const models::Model& model_;
  std::vector<std::vector<NodeId>> consumers_;
  ParameterUses uses_;
};

// E sum_places (d log p_y / dx)^2 per channel of the nodes' values, f64 [C] each.
std::vector<at::Tensor> fisher_information(const models::Model& model,
                                           const std::vector<NodeId>& nodes,
                                           const at::Tensor& images, std::int64_t batch_size,
                                           std::uint64_t seed) {
  auto draws = at::detail::createCPUGenerator(stream_seed(seed, "fisher", 0));
  std::vector<at::Tensor> sums(nodes.size());
  const at::AutoGradMode with_gradients(true);
  for (const auto& batch : images.split(batch_size)) {
    models::Taps taps{nodes, {}};
    const auto logits = models::execute(model.graph, model.parameters,
                                        batch.detach().clone().requires_grad_(true), &taps);
    const auto log_p = at::log_softmax(logits, 1);
    const auto drawn = at::multinomial(log_p.detach().exp().cpu(), 1, false, draws);
    const auto gradients =
        torch::autograd::grad({log_p.gather(1, drawn.to(log_p.device())).sum()}, taps.values);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto sum = gradients[i].square().sum({0, 2, 3}, false, at::kDouble).cpu();
      sums[i] = sums[i].defined() ? sums[i] + sum : sum;
    }
  }
  for (auto& sum : sums) sum.div_(images.size(0));
  return sums;
}

// Copies of a channel beyond itself, by the places of others.
using Copies = std::map<std::int64_t, std::vector<std::int64_t>>;

// noise f64 [C]: the divergence that each channel's quantization causes; dead bool [C].
Copies share_out(const at::Tensor& noise, const at::Tensor& dead) {
  std::vector<double> left(static_cast<std::size_t>(noise.size(0)));  // without what is dead
  std::vector<std::int64_t> free;
  for (std::int64_t c = 0; c < noise.size(0); ++c) {
    const bool is_dead = dead[c].item<bool>();
    if (is_dead) free.push_back(c);
    left[c] = is_dead ? 0 : noise[c].item<double>();
  }
  Copies copies;
  for (const auto place : free) {
    std::int64_t best = -1;
    double most = 0;
    for (std::int64_t c = 0; c < std::ssize(left); ++c) {
      const auto found = copies.find(c);
      const double n = found == copies.end() ? 1 : 1 + std::ssize(found->second);
      const double gain = left[c] * (1 / (n * n) - 1 / ((n + 1) * (n + 1)));
      if (gain > most) std::tie(most, best) = std::pair(gain, c);
    }
    if (best >= 0) copies[best].push_back(place);
  }
  return copies;
}

// bool [C]
at::Tensor dead_channels(const models::Model& model, const Way& way) {
  const auto [mean, variance] = implied_moments(model, way.first_norm);
  return mean.add(variance.sqrt(), kDeadDeviations).le(0).cpu();
}

// The step of each channel with a scale of its own, f32 [C].
at::Tensor own_steps(const models::Model& model, const Way& way, std::int64_t bits) {
  const auto [mean, variance] = implied_moments(model, way.first_norm);
  return channel_ranges(mean, variance.sqrt(), way.bound, bits)
      .div(static_cast<double>((1 << bits) - 1));
}

class Splitter {
 public:
  Splitter(models::Model& model, const Way& way) : model_(model), way_(way) {}

  void apply(const Copies& copies, const at::Tensor& steps) {
    for (const NodeId id : {way_.maker, way_.depthwise, way_.reader}) own(id, "weight");
    for (const NodeId id : {way_.first_norm, way_.second_norm})
      for (const char* role : {"gamma", "beta", "mean", "variance"}) own(id, role);
    own(way_.reader_norm, "mean");
    for (const auto& [channel, places] : copies) {
      for (const auto place : places) {
        make_room(place);
        copy(channel, place);
      }
      spread(channel, places, steps[channel].item<double>());
    }
  }

 private:
  at::Tensor& param(NodeId id, const char* role) {
    return model_.parameters.at(model_.graph[id].params.at(role));
  }
  void own(NodeId id, const char* role) { param(id, role) = param(id, role).clone(); }

  // What the reader makes of a channel of zeros goes into the mean that its BatchNorm subtracts.
  void make_room(std::int64_t place) {
    const double eps = models::get_if<models::BatchNorm>(model_.graph[way_.second_norm])->eps;
    const auto at = [&](const char* role) {
      return param(way_.second_norm, role)[place].item<double>();
    };
    const double value = at("beta") - at("mean") * at("gamma") / std::sqrt(at("variance") + eps);
    const double constant = std::clamp(value, 0.0, way_.second_bound);
    param(way_.reader_norm, "mean")
        .sub_(param(way_.reader, "weight").select(1, place).flatten(), constant);
  }

  void copy(std::int64_t from, std::int64_t to) {
    const auto over = [&](NodeId id, const char* role) {
      auto& x = param(id, role);
      x[to].copy_(x[from]);
    };
    for (const NodeId id : {way_.maker, way_.depthwise}) over(id, "weight");
    for (const NodeId id : {way_.first_norm, way_.second_norm})
      for (const char* role : {"gamma", "beta", "mean", "variance"}) over(id, role);
  }

  void spread(std::int64_t channel, std::vector<std::int64_t> places, double step) {
    places.insert(places.begin(), channel);
    const auto n = static_cast<double>(places.size());
    auto& weight = param(way_.reader, "weight");
    const auto share = weight.select(1, channel).div(n);
    const double of_shift = param(way_.depthwise, "weight")[channel].sum().item<double>();
    for (std::size_t j = 0; j < places.size(); ++j) {
      const double shift = step * ((static_cast<double>(j) + 0.5) / n - 0.5);
      param(way_.first_norm, "beta")[places[j]].add_(shift);
      param(way_.second_norm, "mean")[places[j]].add_(shift * of_shift);
      weight.select(1, places[j]).copy_(share);
    }
  }

  models::Model& model_;
  const Way& way_;
};

}  // namespace

bool has_splittable_channels(const models::Model& model) {
  const auto ways = Ways(model).find();
  return std::ranges::any_of(
      ways, [&](const Way& way) { return dead_channels(model, way).any().item<bool>(); });
}

models::Model split_channels(models::Model model, const QuantOptions& options,
                             const at::Tensor& images, std::int64_t batch_size,
                             std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  const auto placement = place(model.graph, options);
  auto ways = Ways(model).find();
  std::erase_if(ways, [&](const Way& way) {
    const auto bits = placement.asks[way.depthwise];
    return bits <= 0 || bits >= kFineBits || !dead_channels(model, way).any().item<bool>();
  });
  if (ways.empty()) return model;
  std::vector<NodeId> read;
  for (const auto& way : ways) read.push_back(way.clip);
  const auto information = fisher_information(model, read, images, batch_size, seed);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto steps = own_steps(model, ways[i], placement.asks[ways[i].depthwise]);
    const auto noise = information[i] * steps.to(at::kCPU, at::kDouble).square();
    Splitter(model, ways[i]).apply(share_out(noise, dead_channels(model, ways[i])), steps);
  }
  return model;
}

}  // namespace zsq::quant
