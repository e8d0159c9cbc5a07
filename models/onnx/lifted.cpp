// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/lifted.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/error.h"
#include "models/onnx/converters.h"
#include "models/onnx/permuted.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

// What of an operator counts dimensions from the front: attribute axis; attribute or input axes;
// pads of a Pad; perm of a Transpose; the sizes of a Reshape; start and end of a Shape.
enum class Counts { nothing, axis, axes, pads, perm, sizes, bounds };

struct Lifting {
  Counts counts = Counts::nothing;
  std::int64_t axis = 0;  // where the node gives none
  std::size_t input = 1;  // where axes are an input
};

const std::map<std::string, Lifting>& liftings() {
  static const std::map<std::string, Lifting> all = [] {
    std::map<std::string, Lifting> known{
        {"Concat", {Counts::axis}},
        {"Gather", {Counts::axis}},
        {"LayerNormalization", {Counts::axis, -1}},
        {"Pad", {Counts::pads, 0, 3}},
        {"ReduceMax", {Counts::axes}},
        {"ReduceMean", {Counts::axes}},
        {"ReduceSum", {Counts::axes}},
        {"Reshape", {Counts::sizes}},
        {"Shape", {Counts::bounds}},
        {"Slice", {Counts::axes, 0, 3}},
        {"Softmax", {Counts::axis, -1}},
        {"Split", {Counts::axis}},
        {"Squeeze", {Counts::axes}},
        {"Transpose", {Counts::perm}},
        {"Unsqueeze", {Counts::axes}},
    };
    for (const auto* type : {"Add", "Cast", "Clip", "Div", "Dropout", "Gemm", "Identity", "MatMul",
                             "Max", "Min", "Mul", "Pow", "Sub", "Sum"})
      known.insert({type, {}});
    for (const auto& name : function_names()) known.insert({name, {}});
    return known;
  }();
  return all;
}

// Shapes are those of a batch of 1.
Shape with_batch(const Dims& dims) {
  Shape shape{1};
  shape.insert(shape.end(), dims.begin(), dims.end());
  return shape;
}

bool keeps_order(const Call& call, const Node& node) {
  if (is<Reshape>(node) || is<Flatten>(node)) return true;
  const auto* transpose = get_if<Transpose>(node);
  if (!transpose) return false;
  Dims moved;
  for (const auto axis : transpose->perm)
    if (call.shape(node.inputs[0])[static_cast<std::size_t>(axis)] != 1) moved.push_back(axis);
  return std::ranges::is_sorted(moved);
}

// The elements of x in other dimensions: of the first node that has them in the same order.
NodeId reshaped(Call& call, NodeId x, const Dims& dims) {
  const auto& graph = call.model().graph;
  auto first = x;
  while (keeps_order(call, graph[first])) first = graph[first].inputs[0];
  if (call.shape(first) == with_batch(dims)) return first;
  const bool is_made = is<Reshape>(graph[x]) && graph[x].inputs[0] == first;
  return is_made && call.shape(x) == with_batch(dims) ? x : call.part(Reshape{dims}, {first});
}

// [N, ...] of what the file sees.
NodeId lift(Call& call, const Value& value) {
  if (value.lifted) return value.node;
  Dims dims = call.shape(value.node);
  if (value.is_matrix) {
    std::int64_t tokens = 1;
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) tokens *= dims[i];
    return reshaped(call, value.node, {tokens, dims.back()});
  }
  if (!value.permuted) return reshaped(call, value.node, dims);
  Dims order{0}, permuted;
  for (const auto axis : *value.permuted) {
    if (axis != 0) order.push_back(axis);
    permuted.push_back(dims[static_cast<std::size_t>(axis)]);
  }
  const bool same = std::ranges::is_sorted(order);
  return reshaped(call, same ? value.node : call.part(Transpose{order}, {value.node}), permuted);
}

class Lifted {
 public:
  explicit Lifted(const Call& call) : call_(call), node_(call.node()) {}

  void convert(Convert convert) {
    const auto found = liftings().find(node_.op_type);
    if (found == liftings().end())
      call_.fail("is not known where the batch is in another dimension than the first");
    if (node_.op_type == "Gemm" && call_.has(2) && !call_.is_constant(2))
      call_.fail("adds another activation where the batch is in another dimension than the first");
    for (std::size_t i = 0; i < call_.inputs(); ++i)
      if (call_.has(i) && !call_.is_constant(i)) lift_input(i);
    count_batch(found->second);
    Call call = call_.with(node_, stand_ins_);
    convert(call);
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) bind_output(i);
  }

 private:
  void lift_input(std::size_t input) {
    const Value value = call_.value(input);
    if (value.node < 0 || value.quantized || value.flattened) call_.activation(input);  // says why
    const proto::Node before{call_.input_name(input) + ".lifted", "Reshape", "", {},
                             {call_.input_name(input)},           {}};
    Call call = call_.with(before);
    Value lifted{lift(call, value), {}};
    const auto rank = std::ssize(call.shape(lifted.node));
    if (rank < 3 && node_.op_type == "MatMul") call_.fail("a vector as a factor is not known here");
    rank_ = std::max(rank_, rank);
    stand_ins_[input] = lifted;
    lifted.lifted = true;
    if (value.permuted) call.bind(lifted);  // for its other readers
  }

  void count_batch(const Lifting& lifting) {
    switch (lifting.counts) {
      case Counts::nothing:
        return lift_constants(rank_);
      case Counts::axis: {
        const bool first = node_.op_type == "Softmax" && call_.opset() < 13;
        set("axis", after_batch(call_.integer("axis", first ? 1 : lifting.axis)));
        if (node_.op_type == "Concat") lift_constants(0);
        return;
      }
      case Counts::axes:
        return count_axes(lifting.input);
      case Counts::pads:
        return count_pads(lifting.input);
      case Counts::perm: {
        auto perm = call_.integers("perm").value_or(Dims{});
        for (auto& axis : perm) ++axis;
        perm.insert(perm.begin(), 0);
        return set("perm", perm);
      }
      case Counts::sizes: {
        auto sizes = call_.integers(1);
        std::ranges::replace(sizes, kBatch, std::int64_t{1});
        sizes.insert(sizes.begin(), kBatch);
        return replace(1, sizes);
      }
      case Counts::bounds:
        set("start", position(call_.integer("start", 0)) + 1);
        set("end", position(call_.integer("end", rank_)) + 1);
    }
  }

  // Those with as many dimensions as `rank` or more; narrower ones broadcast as in the file.
  void lift_constants(std::int64_t rank) {
    for (std::size_t i = 0; i < call_.inputs(); ++i)
      if (call_.has(i) && call_.is_constant(i) && call_.constant(i).dim() >= rank)
        stand_ins_[i] = {-1, call_.constant(i).unsqueeze(0)};
  }

  void count_axes(std::size_t input) {
    auto axes = call_.integers_of("axes", input);
    // Squeeze then drops every dimension of 1.
    if (!axes && node_.op_type == "Squeeze") return;
    if (!axes || axes->empty()) call_.fail("must name axes where the batch is not the first one");
    for (auto& axis : *axes) axis = after_batch(axis);
    if (call_.has(input)) return replace(input, *axes);
    set("axes", *axes);
  }

  // Two for each axis that the node names, or for all.
  void count_pads(std::size_t axes) {
    if (call_.has(axes)) return count_axes(axes);
    auto pads = call_.integers_of("pads", 1).value_or(Dims{});
    if (std::ssize(pads) != 2 * (rank_ - 1)) call_.fail("two pads per axis were expected");
    pads.insert(pads.begin() + rank_ - 1, 0);
    pads.insert(pads.begin(), 0);
    if (call_.has(1)) return replace(1, pads);
    set("pads", pads);
  }

  static std::int64_t after_batch(std::int64_t axis) { return axis < 0 ? axis : axis + 1; }

  // Of a bound among the dimensions that the file sees, as Shape counts them.
  std::int64_t position(std::int64_t bound) const {
    const auto count = rank_ - 1;
    return std::clamp(bound < 0 ? bound + count : bound, std::int64_t{0}, count);
  }

  void replace(std::size_t input, const Dims& values) {
    stand_ins_[input] = {-1, at::tensor(values, at::kLong)};
  }

  template <class T>
  void set(const std::string& attribute, const T& value) {
    std::erase_if(node_.attributes, [&](const auto& one) { return one.name == attribute; });
    node_.attributes.push_back({attribute, value});
  }

  // Where the first dimension that the file sees is 1, it may be the batch again.
  void bind_output(std::size_t output) {
    const auto* bound = call_.bound(output);
    if (node_.outputs[output].empty() || !bound || bound->constant.defined()) return;
    const auto& shape = call_.shape(bound->node);
    Dims dims(shape.begin() + 1, shape.end());
    if (dims.empty()) call_.fail("leaves no dimension");
    Value value{bound->node, {}};
    value.lifted = dims[0] != 1;
    if (!value.lifted) dims.erase(dims.begin());
    const proto::Node after{node_.outputs[output] + ".lifted", "Reshape", "", {},
                            {node_.outputs[output]},           {}};
    Call call = call_.with(after);
    value.node = reshaped(call, value.node, dims);
    call.bind(value);
  }

  const Call& call_;
  proto::Node node_;
  std::map<std::size_t, Value> stand_ins_;
  std::int64_t rank_ = 0;  // of the widest activation, with the batch
};

// Whether some input satisfies the condition.
template <class Condition>
bool any_input(const Call& call, const Condition& condition) {
  for (std::size_t i = 0; i < call.inputs(); ++i)
    if (call.has(i) && condition(call.value(i))) return true;
  return false;
}

}  // namespace

void convert_activations(Call& call, Convert convert, bool before_convolution) {
  if (any_input(call, [](const Value& value) { return value.lifted; }))
    return Lifted(call).convert(convert);
  try {
    if (!convert_permuted(call)) convert(call);
  } catch (const Error& error) {
    const auto& type = call.node().op_type;
    const bool unsupported = error.code() == ErrorCode::unsupported_model;
    if (!unsupported || !before_convolution || !liftings().contains(type)) throw;
    if (call.fixed_batch() == 1) return Lifted(call).convert(convert);
    const auto moved = [](const Value& value) { return value.permuted || value.is_matrix; };
    if (type != "Reshape" && !any_input(call, moved)) throw;
    throw Error(
        error.code(),
        std::string(error.what()) +
            "; zsq reads this in files with a batch of 1: export the network with one image");
  }
}

}  // namespace zsq::models::onnx
