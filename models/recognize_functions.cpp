// SPDX-License-Identifier: Apache-2.0
#include "models/recognize_functions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <optional>
#include <set>

#include "models/execute.h"

namespace zsq::models {
namespace {

constexpr std::size_t kMostNodes = 16;
constexpr int kMostTrials = 4000;  // of one graph: what a hostile file may cost
constexpr double kTolerance = 1e-5;

// [-12, 12], off the places where functions have corners or poles, and far points on both sides,
// because an expression may be cut off anywhere.
const at::Tensor& grid() {
  static const auto points = [] {
    const auto far =
        at::tensor({16.0, 24.0, 48.0, 100.0, 200.0, 300.0, 1e3, 1e4, 1e6}, at::kDouble);
    const auto close = at::linspace(-12.013, 12.029, 193, at::kDouble);
    return at::cat({far.neg().flip(0), close, far});
  }();
  return points;
}

// What overflows far out, as log(1 + e^x) does, is what the file gives there; it may differ.
bool near(const at::Tensor& y, const at::Tensor& known) {
  const auto scale = at::abs(known).clamp_min(1);
  const auto overflows = at::abs(grid()).gt(13).logical_and(y.isfinite().logical_not());
  return at::abs(y - known).le(scale * kTolerance).logical_or(overflows).all().item<bool>();
}

double at_point(const at::Tensor& values, std::int64_t i) { return values[i].item<double>(); }

// max(x, slope x) by its slope on the left.
std::optional<Op> as_leaky_relu(const at::Tensor& y) {
  const double slope = at_point(y, 0) / at_point(grid(), 0);
  const bool plausible = slope > -1e-7 && slope < 0.999;
  if (!plausible || !near(y, at::leaky_relu(grid(), slope))) return {};
  if (slope < 1e-7) return Clip{};
  return LeakyRelu{slope};
}

// clamp(alpha x + beta, 0, 1) by two points on the slope.
std::optional<Op> as_hard_sigmoid(const at::Tensor& y) {
  const auto inside = y.gt(1e-4).logical_and(y.lt(1 - 1e-4)).nonzero().flatten();
  if (inside.numel() < 2 || inside.numel() == y.numel()) return {};
  const auto first = inside[0].item<std::int64_t>(), last = inside[-1].item<std::int64_t>();
  const double x = at_point(grid(), first);
  const double alpha = (at_point(y, last) - at_point(y, first)) / (at_point(grid(), last) - x);
  const double beta = at_point(y, first) - alpha * x;
  if (!near(y, at::clamp(alpha * grid() + beta, 0, 1))) return {};
  return HardSigmoid{alpha, beta};
}

std::optional<Op> known_function(const at::Tensor& y) {
  const auto& x = grid();
  if (!near(y, y)) return {};  // a pole in [-12, 12]
  if (near(y, at::gelu(x))) return Gelu{};
  if (near(y, at::gelu(x, "tanh"))) return Elementwise{Function::gelu_tanh};
  if (near(y, at::hardswish(x))) return HardSwish{};
  if (near(y, at::mish(x))) return Elementwise{Function::mish};
  if (near(y, at::softplus(x))) return Elementwise{Function::softplus};
  if (near(y, at::sigmoid(x))) return Sigmoid{};
  if (auto leaky = as_leaky_relu(y)) return leaky;
  return as_hard_sigmoid(y);
}

// Between two points of the grid nobody sees where a function jumps.
bool jumps(const Node& node) {
  const auto* op = get_if<Elementwise>(node);
  return op && (op->function == Function::sign || op->function == Function::floor ||
                op->function == Function::ceil || op->function == Function::round);
}

bool is_elementwise(const Node& node) {
  if (jumps(node)) return false;
  const bool interval = is<Clip>(node) && node.params.empty();
  return interval || is<Add>(node) || is<Mul>(node) || is<Binary>(node) || is<Elementwise>(node) ||
         is<Sigmoid>(node) || is<HardSigmoid>(node) || is<HardSwish>(node) || is<LeakyRelu>(node);
}

// Of the nodes that the output depends on.
std::vector<std::vector<NodeId>> live_consumers(const Graph& graph) {
  std::vector<std::vector<NodeId>> result(graph.nodes.size());
  for (auto id = graph.output; id >= 0; --id) {
    if (id != graph.output && result[static_cast<std::size_t>(id)].empty()) continue;
    for (const auto input : graph[id].inputs) result[static_cast<std::size_t>(input)].push_back(id);
  }
  return result;
}

class Recognizer {
 public:
  explicit Recognizer(Model& model)
      : model_(model),
        consumers_(live_consumers(model.graph)),
        shapes_(infer_shapes(model.graph, model.parameters)) {}

  void run() {
    for (auto id = model_.graph.output; id >= 0; --id) {
      const bool live =
          id == model_.graph.output || !consumers_[static_cast<std::size_t>(id)].empty();
      if (live && is_elementwise(model_.graph[id]) && inner_.count(id) == 0) try_root(id);
    }
  }

 private:
  bool is_number(NodeId id) const {
    const Node& node = model_.graph[id];
    return is<Parameter>(node) && model_.parameters.at(node.params.at("value")).numel() == 1;
  }

  const Shape& shape(NodeId id) const { return shapes_[static_cast<std::size_t>(id)]; }

  bool read_only_by(NodeId id, const std::set<NodeId>& nodes) const {
    if (id == model_.graph.output) return false;
    const auto& readers = consumers_[static_cast<std::size_t>(id)];
    return std::all_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return nodes.count(reader) > 0; });
  }

  // Grows the expression from its last node on; whenever it depends on one tensor it is tried.
  // The longest that is known counts.
  void try_root(NodeId root) {
    std::set<NodeId> inside{root}, border;
    const auto reach = [&](NodeId id) {
      for (const auto input : model_.graph[id].inputs)
        if (!is_number(input)) border.insert(input);
    };
    reach(root);
    std::optional<Op> best;
    std::set<NodeId> best_inside;
    NodeId best_x = -1;
    while (!border.empty() && inside.size() <= kMostNodes) {
      if (border.size() == 1 && inside.size() > 1) {
        if (auto known = evaluate(inside, root, *border.begin())) {
          best = std::move(known);
          best_inside = inside;
          best_x = *border.begin();
        }
      }
      const auto next = std::find_if(border.rbegin(), border.rend(), [&](NodeId id) {
        return is_elementwise(model_.graph[id]) && read_only_by(id, inside);
      });
      if (next == border.rend()) break;
      const NodeId id = *next;
      border.erase(id);
      inside.insert(id);
      reach(id);
    }
    if (best) replace(root, best_x, *best, best_inside);
  }

  std::optional<Op> evaluate(const std::set<NodeId>& inside, NodeId root, NodeId x) {
    if (shape(root) != shape(x) || ++trials_ > kMostTrials) return {};
    Graph part;
    part.input_shape = {1, 1, grid().numel()};
    part.input = part.add({"", Input{}, {}});
    std::map<NodeId, NodeId> moved{{x, part.input}};
    for (const NodeId id : inside) {  // in order
      auto node = model_.graph[id];
      for (auto& input : node.inputs) {
        if (moved.count(input) == 0) moved[input] = part.add(model_.graph[input]);
        input = moved.at(input);
      }
      moved[id] = part.add(std::move(node));
    }
    part.output = moved.at(root);
    auto y = execute(part, model_.parameters, grid().reshape({1, 1, 1, -1}));
    return known_function(y.flatten());
  }

  void replace(NodeId root, NodeId x, const Op& op, const std::set<NodeId>& inside) {
    inner_.insert(inside.begin(), inside.end());
    Node& node = model_.graph[root];
    node.op = op;
    node.inputs = {x};
    node.params.clear();
  }

  Model& model_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<Shape> shapes_;
  std::set<NodeId> inner_;
  int trials_ = 0;
};

}  // namespace

void recognize_functions(Model& model) { Recognizer(model).run(); }

}  // namespace zsq::models
