// SPDX-License-Identifier: Apache-2.0
#include "exporters/code_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "quant/target_rules.h"

namespace zsq::exporters {
namespace {

using models::NodeId;

// Every value of a tensor lies in it.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

constexpr double kRounding = 1e-5;  // relative; what float arithmetic may add to a value

class Bounds {
 public:
  Bounds(const quant::Student& student, const Plan& plan)
      : student_(student),
        plan_(plan),
        rules_(quant::target_rules(student.options.target)),
        ranges_(student.graph.nodes.size()),
        bounds_(student.graph.nodes.size()) {}

  std::vector<CodeBounds> run() && {
    for (std::size_t i = 0; i < ranges_.size(); ++i) visit(static_cast<NodeId>(i));
    return std::move(bounds_);
  }

 private:
  void visit(NodeId id) {
    const models::Node& node = student_.graph[id];
    Range& range = ranges_[id];
    if (const auto* quantizer = calibrated_quantizer(student_, id)) {
      range = quantize(id, *quantizer);
    } else if (plan_.absorbed[id]) {
      range = ranges_[node.inputs[0]];
    } else if (const auto* clip = models::get_if<models::Clip>(node)) {
      const Range before = ranges_[node.inputs[0]];
      range = {std::max<double>(before.least, clip->lo), std::min<double>(before.most, clip->hi)};
    } else if (models::is<models::Sigmoid>(node) ||
               (models::is<models::HardSigmoid>(node) && !plan_.saturates[id])) {
      range = {0, 1};
    } else if (selects_or_averages(node)) {
      range = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
      for (NodeId input : node.inputs) widen(range, ranges_[input]);
      const auto* pad = models::get_if<models::Pad>(node);
      if (pad) widen(range, {pad->value, pad->value});
      if (models::is<models::AvgPool>(node)) widen(range, {0, 0});  // its pads
    }
  }

  bool selects_or_averages(const models::Node& node) const {
    return quant::is_pass_through(rules_, node) || models::is<models::Concat>(node) ||
           models::is<models::AvgPool>(node) || models::is<models::GlobalAvgPool>(node);
  }

  static void widen(Range& range, const Range& other) {
    range = {std::min(range.least, other.least), std::max(range.most, other.most)};
  }

  // What the quantizer after the node does for it.
  std::optional<Range> clip_of(NodeId id) const {
    if (plan_.saturates[id]) return Range{0, 1};
    const auto* clip = models::get_if<models::Clip>(student_.graph[id]);
    if (!clip || !plan_.absorbed[id]) return std::nullopt;
    return Range{clip->lo, clip->hi};
  }

  Range quantize(NodeId id, const quant::ActivationQuantizer& op) {
    const ActivationGrid grid = activation_grid(student_, op);
    const auto zero_point = static_cast<double>(grid.zero_point);
    // In float, as quantizers compute.
    const auto code = [&](double x) {
      return std::nearbyint(static_cast<float>(x) / grid.scale) + zero_point;
    };
    double lowest = static_cast<double>(op.spec().qmin);
    double highest = static_cast<double>(op.spec().qmax);
    const NodeId before = student_.graph[id].inputs[0];
    if (const auto ends = clip_of(before)) {
      const auto [least, most] = std::pair(code(ends->least), code(ends->most));
      std::tie(lowest, highest) =
          std::pair(std::clamp(least, lowest, highest), std::clamp(most, lowest, highest));
    }
    const Range& seen = ranges_[before];
    const auto beyond = [](double x, double sign) { return x + sign * kRounding * std::abs(x); };
    bounds_[id] = {static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(highest),
                   !(code(beyond(seen.least, -1)) >= lowest),
                   !(code(beyond(seen.most, 1)) <= highest)};
    return {(lowest - zero_point) * grid.scale, (highest - zero_point) * grid.scale};
  }

  const quant::Student& student_;
  const Plan& plan_;
  const quant::TargetRules& rules_;
  std::vector<Range> ranges_;
  std::vector<CodeBounds> bounds_;
};

}  // namespace

std::vector<CodeBounds> code_bounds(const quant::Student& student, const Plan& plan) {
  return Bounds(student, plan).run();
}

}  // namespace zsq::exporters
