// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/open_node.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace zsq::models::onnx {
namespace {

using Numbers = std::vector<std::int64_t>;
using Form = std::optional<OpenForm>;

const OpenForm kSame{Input{}, {}};

template <class Pool>
Numbers window(const Pool& pool) {
  Numbers all(pool.kernel.begin(), pool.kernel.end());
  all.insert(all.end(), pool.pads.begin(), pool.pads.end());
  all.push_back(pool.ceil_mode);
  return all;
}

// The attributes that hold what an importer calculates from the size of the image.
Numbers sizes_in(const Node& node) {
  if (const auto* op = get_if<Reshape>(node)) return op->shape;
  if (const auto* op = get_if<Expand>(node)) return op->shape;
  if (const auto* op = get_if<Slice>(node)) return {op->axis, op->start, op->end, op->step};
  if (const auto* op = get_if<MaxPool>(node)) return window(*op);
  if (const auto* op = get_if<AvgPool>(node)) return window(*op);
  if (const auto* op = get_if<Conv2d>(node)) return {op->pads.begin(), op->pads.end()};
  if (const auto* op = get_if<Pad>(node)) {
    auto all = op->before;
    all.insert(all.end(), op->after.begin(), op->after.end());
    return all;
  }
  return {};
}

class Follower {
 public:
  Follower(const std::vector<Sample>& samples, NodeId id) : samples_(samples), id_(id) {}

  Form form() const {
    const Node& node = of(samples_[0]);
    if (is<Resize>(node) || is<Interpolate>(node)) return resized();
    if (same([&](const Sample& at) { return std::pair(of(at).op.index(), sizes_in(of(at))); }))
      return counts_from_size(node) ? std::nullopt : Form(kSame);
    if (!same([&](const Sample& at) { return of(at).op.index(); })) return std::nullopt;
    if (is<Reshape>(node)) return reshaped();
    if (is<Slice>(node)) return sliced();
    if (is<MaxPool>(node)) return pooled();
    return std::nullopt;
  }

 private:
  const Node& of(const Sample& at) const { return at.model.graph[id_]; }
  template <class T>
  const T& op(const Sample& at) const {
    return *get_if<T>(of(at));
  }
  const Shape& input(const Sample& at) const { return at.shape(of(at).inputs[0]); }

  template <class Of>
  bool same(const Of& value) const {
    return std::ranges::all_of(samples_,
                               [&](const Sample& at) { return value(at) == value(samples_[0]); });
  }

  // Exporters write what the last windows of an average reach beyond the map as pads.
  static bool counts_from_size(const Node& node) {
    const auto* pool = get_if<AvgPool>(node);
    return pool && pool->ceil_mode;
  }

  // 0 where a dimension is as in the input, and one that follows from the others.
  Form reshaped() const {
    if (!same([&](const Sample& at) { return op<Reshape>(at).shape.size(); })) return std::nullopt;
    Reshape open = op<Reshape>(samples_[0]);
    for (std::size_t i = 0; i < open.shape.size(); ++i) {
      if (same([&](const Sample& at) { return op<Reshape>(at).shape[i]; })) continue;
      const bool kept = std::ranges::all_of(samples_, [&](const Sample& at) {
        return input(at).size() > i + 1 && input(at)[i + 1] == op<Reshape>(at).shape[i];
      });
      open.shape[i] = kept ? 0 : -1;
    }
    // Blocks of pixels as channels leave two open, and are one operator in most files.
    const auto ranks = std::pair(input(samples_[0]).size(), open.shape.size() + 1);
    const bool of_blocks = ranks == std::pair(4UL, 6UL) || ranks == std::pair(6UL, 4UL);
    if (std::ranges::count(open.shape, -1) > 1 && !of_blocks) return std::nullopt;
    return OpenForm{open, {}};
  }

  // Places counted from the end.
  Form sliced() const {
    Slice open = op<Slice>(samples_[0]);
    const auto size = [&](const Sample& at) {
      return input(at)[static_cast<std::size_t>(open.axis)];
    };
    const auto from_end = [&](std::int64_t Slice::*place) {
      if (same([&](const Sample& at) { return op<Slice>(at).*place; })) return true;
      const auto rest = [&](const Sample& at) { return op<Slice>(at).*place - size(at); };
      open.*place = rest(samples_[0]);
      if (open.*place == 0) open.*place = std::numeric_limits<std::int64_t>::max();
      return same(rest);
    };
    if (!same(
            [&](const Sample& at) { return std::pair(op<Slice>(at).axis, op<Slice>(at).step); }) ||
        !from_end(&Slice::start) || !from_end(&Slice::end))
      return std::nullopt;
    return OpenForm{open, {}};
  }

  // Of a size that the windows divide, an importer drops the mode, which is right there as well.
  Form pooled() const {
    const auto with_ceil = [&](const Sample& at) {
      auto pool = op<MaxPool>(at);
      pool.ceil_mode = true;
      return pool;
    };
    if (!same([&](const Sample& at) { return window(with_ceil(at)); })) return std::nullopt;
    return OpenForm{with_ceil(samples_[0]), {}};
  }

  // A scale of its own, a size of its own, or that of another map.
  Form resized() const {
    const auto scale = [&](const Sample& at) {
      const auto* whole = get_if<Resize>(of(at));
      return whole ? std::array{static_cast<double>(whole->scale[0]),
                                static_cast<double>(whole->scale[1])}
                   : op<Interpolate>(at).scale;
    };
    const auto coordinates = [&](const Sample& at) {
      const auto* op = get_if<Interpolate>(of(at));
      return op ? op->coordinates : ResizeCoordinates::asymmetric;
    };
    if (same([&](const Sample& at) {
          return std::tuple(of(at).op.index(), scale(at), coordinates(at));
        }))
      return kSame;
    Interpolate open{.size = {},
                     .mode = InterpolationMode::nearest,
                     .coordinates = ResizeCoordinates::asymmetric,
                     .rounding = NearestRounding::floor};
    const Interpolate* found = nullptr;
    for (const Sample& at : samples_) {
      const auto* one = get_if<Interpolate>(of(at));
      if (!one && !is<Resize>(of(at))) return std::nullopt;
      if (one && found && !same_way(*one, *found)) return std::nullopt;
      if (one) found = one;
    }
    if (found) open = *found;
    open.scale = {};
    open.size = map_size(samples_[0], id_);
    if (same([&](const Sample& at) { return map_size(at, id_); })) return OpenForm{open, {}};
    for (NodeId other = 0; other < id_; ++other)
      if (keeps_its_name(samples_[0].model.graph, other) && has_size_of(other))
        return OpenForm{open, samples_[0].model.graph[other].name};
    return std::nullopt;
  }

  static bool same_way(const Interpolate& a, const Interpolate& b) {
    return a.mode == b.mode && a.coordinates == b.coordinates && a.rounding == b.rounding &&
           a.cubic_coefficient == b.cubic_coefficient && a.antialias == b.antialias &&
           a.exclude_outside == b.exclude_outside;
  }
  static Pair map_size(const Sample& at, NodeId id) { return {at.shape(id)[2], at.shape(id)[3]}; }
  // No rewrite takes these out of the graph.
  static bool keeps_its_name(const Graph& graph, NodeId id) {
    return id == graph.input || is<Conv2d>(graph[id]) || is<MaxPool>(graph[id]) ||
           is<AvgPool>(graph[id]);
  }
  bool has_size_of(NodeId other) const {
    return std::ranges::all_of(samples_, [&](const Sample& at) {
      return at.shape(other).size() == 4 && map_size(at, other) == map_size(at, id_);
    });
  }

  const std::vector<Sample>& samples_;
  const NodeId id_;
};

}  // namespace

std::optional<OpenForm> open_form(const std::vector<Sample>& samples, NodeId id) {
  return Follower(samples, id).form();
}

}  // namespace zsq::models::onnx
