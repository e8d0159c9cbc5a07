// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/split_channels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "models/load.h"
#include "quant/calibration/fisher_information.h"
#include "quant/calibration/inverted_bottleneck.h"
#include "quant/calibration/ranges.h"
#include "quant/data_free/channel_ranges.h"
#include "quant/data_free/inferred_values.h"
#include "quant/data_free/linear_groups.h"
#include "quant/placement.h"

namespace zsq::quant {
namespace {

using models::NodeId;

// A channel whose BatchNorm implies values above 0 at less than one place in a hundred.
constexpr double kDeadDeviations = 2.5;
constexpr std::int64_t kFineBits = 8;

// bool [C]
at::Tensor dead_channels(const models::Model& model, const InvertedBottleneck& block) {
  const auto [mean, variance] = implied_moments(model, block.first_norm);
  return mean.add(variance.sqrt(), kDeadDeviations).le(0).cpu();
}

// Integer convolutions of runtimes take so many channels at once, and are slow with what is left.
constexpr std::int64_t kChannelsAtOnce = 16;

// Which channels of a block get copies, and where.
class Shares {
 public:
  // noise f64 [C]: the divergence that each channel's quantization causes; dead bool [C]; cost: of
  // one more place, as a share of all multiplications. Dead channels give their places.
  Shares(const at::Tensor& noise, const at::Tensor& dead, double cost)
      : width_(noise.size(0)),
        together_(std::gcd(width_, kChannelsAtOnce)),
        cost_(cost * static_cast<double>(together_)) {
    const auto alive = noise.masked_fill(dead, 0).contiguous();
    noise_.assign(alive.const_data_ptr<double>(), alive.const_data_ptr<double>() + width_);
    for (std::int64_t c = 0; c < width_; ++c)
      if (dead[c].item<bool>()) give(c);
  }

  // Of the places that are appended together.
  double cost() const { return cost_; }
  double gain_per_cost() const {
    Shares tried = *this;
    return tried.append() / cost_;
  }
  // What the new copies take off the divergence.
  double append() {
    double sum = 0;
    for (std::int64_t i = 0; i < together_; ++i) sum += give(width_ + appended_++);
    return sum;
  }

  std::int64_t appended() const { return appended_; }
  // Places of a channel's copies, beyond its own.
  const std::map<std::int64_t, std::vector<std::int64_t>>& copies() const { return copies_; }

 private:
  // What one more copy takes off the divergence.
  double gain(std::int64_t channel) const {
    const auto found = copies_.find(channel);
    const double n = found == copies_.end() ? 1 : 1 + static_cast<double>(found->second.size());
    return noise_[channel] * (1 / (n * n) - 1 / ((n + 1) * (n + 1)));
  }
  double give(std::int64_t place) {
    std::int64_t best = 0;
    double most = 0;
    for (std::int64_t c = 0; c < width_; ++c)
      if (const double taken = gain(c); taken > most) std::tie(most, best) = std::pair(taken, c);
    if (most > 0) copies_[best].push_back(place);
    return most;
  }

  std::vector<double> noise_;
  std::int64_t width_, together_, appended_ = 0;
  double cost_;
  std::map<std::int64_t, std::vector<std::int64_t>> copies_;
};

// The greedy choice under a budget, a share of all multiplications.
void append_within(std::vector<Shares>& shares, double budget) {
  for (;;) {
    Shares* best = nullptr;
    double most = 0;
    for (auto& one : shares) {
      if (one.cost() > budget) continue;
      if (const double gain = one.gain_per_cost(); gain > most)
        std::tie(most, best) = std::pair(gain, &one);
    }
    if (!best) return;
    budget -= best->cost();
    best->append();
  }
}

// Steps of the quantizers that read a block's channels.
struct Steps {
  at::Tensor first;   // f32 [C], before the depthwise convolution, of scales of their own
  double second = 0;  // of the tensor after it; 0: fine, or none
};

class Splitter {
 public:
  Splitter(models::Model& model, const InvertedBottleneck& block) : model_(model), block_(block) {}

  void apply(const Shares& shares, const Steps& steps) {
    append_channels(model_, block_, shares.appended());  // also makes the tensors the model's own
    auto& mean = param(block_.project_norm, "mean");
    mean = mean.clone();
    first_shift_ = at::zeros_like(param(block_.first_norm, "beta"));
    second_shift_ = at::zeros_like(first_shift_);
    for (const auto& [channel, places] : shares.copies()) {
      for (const auto place : places) {
        make_room(place);
        copy(channel, place);
      }
      spread(channel, places, steps);
    }
    shift();
  }

 private:
  at::Tensor& param(NodeId id, const char* role) {
    return model_.parameters.at(model_.graph[id].params.at(role));
  }

  // What the project makes of a channel of zeros goes into the mean that its BatchNorm subtracts.
  void make_room(std::int64_t place) {
    const double eps = models::get_if<models::BatchNorm>(model_.graph[block_.second_norm])->eps;
    const auto at = [&](const char* role) {
      return param(block_.second_norm, role)[place].item<double>();
    };
    const double value = at("beta") - at("mean") * at("gamma") / std::sqrt(at("variance") + eps);
    const double bound = models::get_if<models::Clip>(model_.graph[block_.second_clip])->hi;
    param(block_.project_norm, "mean")
        .sub_(param(block_.project, "weight").select(1, place).flatten(),
              std::clamp(value, 0.0, bound));
  }

  void copy(std::int64_t from, std::int64_t to) {
    const auto over = [&](NodeId id, const char* role) {
      auto& x = param(id, role);
      x[to].copy_(x[from]);
    };
    for (const NodeId id : {block_.expand, block_.depthwise}) over(id, "weight");
    for (const NodeId id : {block_.first_norm, block_.second_norm})
      for (const char* role : {"gamma", "beta", "mean", "variance"}) over(id, role);
  }

  void spread(std::int64_t channel, std::vector<std::int64_t> places, const Steps& steps) {
    places.insert(places.begin(), channel);
    const auto n = static_cast<double>(places.size());
    auto& weight = param(block_.project, "weight");
    const auto share = weight.select(1, channel).div(n);
    for (std::size_t j = 0; j < places.size(); ++j) {
      const double part = (static_cast<double>(j) + 0.5) / n - 0.5;
      first_shift_[places[j]] = steps.first[channel] * part;
      second_shift_[places[j]] = steps.second * part;
      weight.select(1, places[j]).copy_(share);
    }
  }

  void shift() {
    const auto of_filter = param(block_.depthwise, "weight").sum({1, 2, 3});
    const auto of_channel = param(block_.project, "weight").flatten(1).mv(second_shift_);
    param(block_.first_norm, "beta") += first_shift_;
    param(block_.second_norm, "mean") += first_shift_ * of_filter;
    param(block_.second_norm, "beta") += second_shift_;
    param(block_.project_norm, "mean") += of_channel;
    shift_bounds(block_.first_clip, first_shift_);
    shift_bounds(block_.second_clip, second_shift_);
  }

  void shift_bounds(NodeId id, const at::Tensor& shift) {
    const auto by_channel = shift.view({1, -1, 1, 1});
    const auto clip = *models::get_if<models::Clip>(model_.graph[id]);
    set_own(model_, id, "lower", by_channel.add(clip.lo));
    set_own(model_, id, "upper", by_channel.add(clip.hi));
  }

  models::Model& model_;
  const InvertedBottleneck& block_;
  at::Tensor first_shift_, second_shift_;  // f32 [C], in the values' units
};

bool is_coarse(std::int64_t bits) { return bits > 0 && bits < kFineBits; }

Steps steps_of(const models::Model& model, const InvertedBottleneck& block,
               const Placement& placement, Mode mode) {
  const auto [mean, variance] = implied_moments(model, block.first_norm);
  const double bound = models::get_if<models::Clip>(model.graph[block.first_clip])->hi;
  const auto bits = placement.input_bits[block.depthwise],
             bits_behind = placement.input_bits[block.project];
  const auto count = [](std::int64_t bits) { return static_cast<double>((1 << bits) - 1); };
  Steps steps{channel_ranges(mean, variance.sqrt(), bound, bits).div(count(bits))};
  if (!is_coarse(bits_behind)) return steps;
  const InferredValues values(model.graph, model.parameters, {block.second_clip});
  const auto range = range_from_statistics(model.graph, values, block.second_clip,
                                           activation_spec(bits_behind, mode));
  steps.second = (range.second - range.first) / count(bits_behind);
  return steps;
}

}  // namespace

bool has_splittable_channels(const models::Model& model, const QuantOptions& options) {
  return std::ranges::any_of(
      find_inverted_bottlenecks(model), [&](const InvertedBottleneck& block) {
        return options.split_expansion > 0 || dead_channels(model, block).any().item<bool>();
      });
}

models::Model split_channels(models::Model model, const QuantOptions& options,
                             const at::Tensor& images, std::int64_t batch_size,
                             std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  const auto placement = place(model.graph, options);
  auto blocks = find_inverted_bottlenecks(model);
  std::erase_if(
      blocks, [&](const auto& block) { return !is_coarse(placement.input_bits[block.depthwise]); });
  if (blocks.empty()) return model;
  std::vector<NodeId> read;
  for (const auto& block : blocks) read.insert(read.end(), {block.first_clip, block.second_clip});
  const auto information = fisher_information(model, read, images, batch_size, seed);

  const auto macs = models::multiply_accumulates(model);
  const auto all_macs = std::accumulate(macs.begin(), macs.end(), std::int64_t{0});
  std::vector<Steps> steps;
  std::vector<Shares> shares;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    steps.push_back(steps_of(model, blocks[i], placement, options.mode));
    const auto noise = information[2 * i] * steps[i].first.to(at::kCPU, at::kDouble).square() +
                       information[2 * i + 1] * (steps[i].second * steps[i].second);
    const auto of_block =
        macs[blocks[i].expand] + macs[blocks[i].depthwise] + macs[blocks[i].project];
    shares.emplace_back(
        noise, dead_channels(model, blocks[i]),
        static_cast<double>(of_block) / static_cast<double>(noise.size(0) * all_macs));
  }
  append_within(shares, options.split_expansion / 100);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (!shares[i].copies().empty()) Splitter(model, blocks[i]).apply(shares[i], steps[i]);
  return model;
}

}  // namespace zsq::quant
