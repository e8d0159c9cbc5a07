// SPDX-License-Identifier: Apache-2.0
// Comparisons of activations and what is chosen by them, in nodes of arithmetic: a truth value is 1
// or 0,
//   a > b             sign(max(a - b, 0))
//   not a, a and b    1 - a, a b; a or b is the larger one
//   where m: a else b  m a + (1 - m) b, which is exact, as m is 1 or 0 and a and b are finite
#include <algorithm>
#include <cmath>
#include <set>

#include "models/onnx/broadcast.h"
#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

bool is_zero(const Operand& operand) {
  return operand.node < 0 && operand.constant.eq(0).all().item<bool>();
}

// Adds those that `from` is calculated of.
void add_ancestors(const Graph& graph, NodeId from, std::set<NodeId>& seen) {
  std::vector<NodeId> open{from};
  while (!open.empty()) {
    const auto id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    open.insert(open.end(), graph[id].inputs.begin(), graph[id].inputs.end());
  }
}

bool may_be_infinite(const Node& node) {
  if (const auto* binary = get_if<Binary>(node))
    return binary->kind == BinaryKind::div || binary->kind == BinaryKind::power;
  const auto* op = get_if<Elementwise>(node);
  if (!op) return false;
  const bool whole = op->alpha == std::floor(op->alpha) && op->alpha >= 0;
  return op->function == Function::exp || op->function == Function::log ||
         op->function == Function::sqrt || op->function == Function::reciprocal ||
         (op->function == Function::power && !whole);
}

// 0 times infinity is no number. What the condition is calculated of counts as finite.
void expect_finite(Call& call, NodeId branch, NodeId mask) {
  const auto& graph = call.model().graph;
  std::set<NodeId> seen;
  add_ancestors(graph, mask, seen);
  std::vector<NodeId> open{branch};
  while (!open.empty()) {
    const auto id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    if (may_be_infinite(graph[id]))
      call.fail("chooses between values of which one may be infinite ('" + graph[id].name +
                "'); write it without Where");
    open.insert(open.end(), graph[id].inputs.begin(), graph[id].inputs.end());
  }
}

// The condition times a branch, or with `inverted` what it leaves.
NodeId masked(Call& call, const Operand& condition, const Operand& branch, bool inverted) {
  if (condition.node < 0) {
    auto mask = condition.constant.to(at::kBool);
    if (inverted) mask = mask.logical_not();
    const auto factor = call.made_up(mask);
    return call.part(Mul{}, {factor, node_of(call, branch)});
  }
  auto mask = condition.node;
  if (inverted) mask = call.part(Binary{BinaryKind::sub}, {call.made_up(1), mask});
  return call.part(Mul{}, {mask, node_of(call, branch)});
}

double number_of(const Model& model, NodeId id) {
  const auto& node = model.graph[id];
  if (!is<Parameter>(node)) return NAN;
  const auto& value = model.parameters.at(node.params.at("value"));
  return value.numel() == 1 ? value.item<double>() : NAN;
}

// Whether a node is 1 or 0, as those below write conditions.
bool is_condition(const Model& model, NodeId id) {
  const auto& node = model.graph[id];
  if (const auto* op = get_if<Elementwise>(node))
    return op->function == Function::sign && is<Clip>(model.graph[node.inputs[0]]);
  if (is<Transpose>(node)) return is_condition(model, node.inputs[0]);
  const auto* binary = get_if<Binary>(node);
  const bool inverse = binary && binary->kind == BinaryKind::sub;
  if (inverse) return number_of(model, node.inputs[0]) == 1 && is_condition(model, node.inputs[1]);
  if (!is<Mul>(node) && (!binary || binary->kind != BinaryKind::maximum)) return false;
  return is_condition(model, node.inputs[0]) && is_condition(model, node.inputs[1]);
}

// Whether a constant would give `y` more values by broadcasting.
bool enlarges(const Call& call, const at::Tensor& constant, NodeId y) {
  const auto& shape = call.shape(y);
  const auto sizes = constant.sizes();
  return sizes.size() > shape.size() ||
         !std::equal(sizes.rbegin(), sizes.rend(), shape.rbegin(),
                     [](auto a, auto b) { return a == 1 || a == b; });
}

// A node as a multiple of another by one number.
struct Multiple {
  NodeId of;
  double factor = 1;
};

Multiple multiple(const Model& model, NodeId id) {
  Multiple found{id};
  while (is<Mul>(model.graph[found.of])) {
    const auto& inputs = model.graph[found.of].inputs;
    const double factor = number_of(model, inputs[1]);
    if (std::isnan(factor)) break;
    found = {inputs[0], found.factor * factor};
  }
  return found;
}

// PyTorch writes softplus(x) as: x where s x is above a threshold, else log(1 + e^(s x)) / s. In
// float32 both are the same above 15.
bool is_softplus(const Model& model, NodeId mask, NodeId x, NodeId softplus) {
  const auto& graph = model.graph;
  const auto* sign = get_if<Elementwise>(graph[mask]);
  if (!sign || sign->function != Function::sign) return false;
  const auto above = graph[mask].inputs[0];
  const auto difference = graph[above].inputs[0];
  if (!is<Clip>(graph[above]) || !is<Add>(graph[difference])) return false;
  const auto outer = multiple(model, softplus);
  const auto* function = get_if<Elementwise>(graph[outer.of]);
  if (!function || function->function != Function::softplus) return false;
  const auto &compared = graph[difference].inputs, &inner = graph[outer.of].inputs;
  const auto scaled = multiple(model, inner[0]), chosen = multiple(model, x),
             condition = multiple(model, compared[0]);
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); };
  return number_of(model, compared[1]) <= -15 && scaled.of == chosen.of &&
         condition.of == scaled.of && near(condition.factor, scaled.factor) &&
         near(outer.factor * scaled.factor, chosen.factor);
}

// A condition that is known, and the same everywhere.
bool choose_whole(Call& call) {
  if (!call.is_constant(0)) return false;
  const auto condition = call.constant(0).to(at::kBool);
  const bool all = condition.all().item<bool>();
  if (!all && condition.any().item<bool>()) return false;
  const std::size_t chosen = all ? 1 : 2, other = all ? 2 : 1;
  if (call.is_constant(chosen)) return false;
  const auto y = call.activation(chosen);
  const bool same = call.is_constant(other) ? !enlarges(call, call.constant(other), y)
                                            : call.shape(call.activation(other)) == call.shape(y);
  if (!same || enlarges(call, call.constant(0), y)) return false;
  call.bind(call.value(chosen));
  return true;
}

}  // namespace

bool cast_condition(Call& call) {
  const auto& value = call.value(0);
  if (value.node < 0 || !is_condition(call.model(), value.node)) return false;
  call.bind(value);
  return true;
}

void convert_compare(Call& call) {
  if (call.inputs() != 2) call.fail("two inputs were expected");
  const auto& type = call.node().op_type;
  // a <= b is not a > b, and a >= b not b > a.
  const bool swap = type == "Less" || type == "GreaterOrEqual";
  const bool invert = type == "LessOrEqual" || type == "GreaterOrEqual";
  auto operands = read_operands(call);
  std::ranges::sort(operands.all, {}, &Operand::input);
  if (swap) std::swap(operands.all[0], operands.all[1]);
  auto &a = operands.all[0], &b = operands.all[1];
  NodeId difference = a.node;
  if (b.node < 0 && !is_zero(b)) {
    b.constant = b.constant.to(at::kFloat).neg();
    difference = call.part(Add{}, {a.node, node_of(call, b)});
  } else if (b.node >= 0) {
    difference = call.part(Binary{BinaryKind::sub}, {node_of(call, a), b.node});
  }
  const auto positive = call.part(Clip{}, {difference});
  if (!invert) return emit_on(call, Elementwise{Function::sign}, {positive}, operands.on_map);
  const auto mask = call.part(Elementwise{Function::sign}, {positive});
  emit_on(call, Binary{BinaryKind::sub}, {call.made_up(1), mask}, operands.on_map);
}

void convert_logical(Call& call) {
  const bool both = call.node().op_type == "And";
  emit_operands(call, both ? Op(Mul{}) : Op(Binary{BinaryKind::maximum}), read_operands(call));
}

void convert_not(Call& call) {
  const auto operands = read_operands(call);
  emit_on(call, Binary{BinaryKind::sub}, {call.made_up(1), operands.all[0].node}, operands.on_map);
}

void convert_where(Call& call) {
  if (call.inputs() != 3) call.fail("three inputs were expected");
  if (choose_whole(call)) return;
  auto operands = read_operands(call);
  std::ranges::sort(operands.all, {}, &Operand::input);
  auto &condition = operands.all[0], &a = operands.all[1], &b = operands.all[2];
  if (condition.node >= 0) {
    for (const auto& branch : {a, b})
      if (branch.node >= 0) expect_finite(call, branch.node, condition.node);
    if (a.node >= 0 && b.node >= 0 && is_softplus(call.model(), condition.node, a.node, b.node))
      return call.bind(call.value(2));
  }
  std::vector<NodeId> parts;
  for (const bool second : {false, true}) {
    const auto& branch = second ? b : a;
    const auto& other = second ? a : b;
    if (is_zero(branch) && other.node >= 0 && !enlarges(call, branch.constant, other.node))
      continue;
    parts.push_back(masked(call, condition, branch, second));
  }
  const auto y = parts.size() == 1 ? parts[0] : call.part(Add{}, parts);
  call.bind({operands.on_map ? call.part(Transpose{{0, 2, 3, 1}}, {y}) : y, {}});
}

}  // namespace zsq::models::onnx
