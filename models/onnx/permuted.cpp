// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/permuted.h"

#include <algorithm>

#include "models/onnx/rearrange.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

class Permuted {
 public:
  explicit Permuted(Call& call, std::size_t input = 0)
      : call_(call), x_(call.value(input).node), order_(*call.value(input).permuted) {}

  void transpose() {
    const auto perm = call_.integers("perm").value_or(Dims{});
    Dims order;
    for (const auto axis : perm) order.push_back(own(axis));
    auto sorted = order;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (sorted.size() != order_.size() || sorted[i] != static_cast<std::int64_t>(i))
        call_.fail("no permutation of the dimensions");
    bind_permuted(call_, x_, order);
  }

  void gather() {
    const auto axis = own(call_.integer("axis", 0));
    if (call_.constant(1).dim() > 1) call_.fail("takes a table of places before the batch");
    const NodeId taken = places_of(axis);
    if (call_.constant(1).dim() == 0) return bind_without(taken, axis, 0);
    bind_permuted(call_, taken, order_);
  }

  // Of indices [places, 1]: whole rows of the first dimension.
  void gather_nd() {
    const auto& indices = call_.constant(1);
    if (indices.dim() != 2 || indices.size(1) != 1 || call_.integer("batch_dims", 0) != 0)
      call_.fail("takes single values of the images; only whole rows of one dimension are known");
    bind_permuted(call_, places_of(own(0)), order_);
  }

  void slice() {
    const auto axes = call_.integers(3), starts = call_.integers(1), ends = call_.integers(2);
    const bool step = call_.has(4) && call_.integers(4) != Dims{1};
    if (axes.size() != 1 || starts.size() != 1 || ends.size() != 1 || step)
      call_.fail("slices several dimensions, or by steps, where the batch is not first");
    const auto axis = own(axes[0]);
    const auto size = size_of(axis);
    const auto bound = [&](std::int64_t at) {
      return std::clamp(at < 0 ? at + size : at, std::int64_t{0}, size);
    };
    if (bound(starts[0]) >= bound(ends[0])) call_.fail("nothing is left");
    bind_permuted(call_, call_.part(cut(axis, bound(starts[0]), bound(ends[0])), {x_}), order_);
  }

  void split() {
    const auto axis = own(call_.integer("axis", 0));
    const auto outputs = static_cast<std::int64_t>(call_.node().outputs.size());
    const auto sizes =
        call_.integers_of("split", 1)
            .value_or(Dims(static_cast<std::size_t>(outputs), size_of(axis) / outputs));
    std::int64_t first = 0;
    for (std::size_t i = 0; i < sizes.size() && i < call_.node().outputs.size(); ++i) {
      const auto last = first + sizes[i];
      if (sizes[i] < 1 || last > size_of(axis)) call_.fail("the parts do not fit the dimension");
      bind_permuted(call_, call_.part(cut(axis, first, last), {x_}), order_, i);
      first = last;
    }
    if (first != size_of(axis)) call_.fail("the parts do not fit the dimension");
  }

  void squeeze() {
    const auto axes = call_.integers_of("axes", 1).value_or(Dims{});
    if (axes.size() != 1) call_.fail("drops several dimensions where the batch is not first");
    const auto axis = own(axes[0]);
    if (size_of(axis) != 1) call_.fail("a dimension to be dropped is not 1");
    bind_without(x_, axis, 0);
  }

  // A sum or product with one number, of which 0 or 1 leaves x as it is.
  void combine(const Op& op, double number, double neutral) {
    const bool same = number == neutral;
    bind_permuted(call_, same ? x_ : call_.part(op, {x_, call_.made_up(number)}), order_);
  }

 private:
  std::int64_t size_of(std::int64_t axis) const {
    return call_.shape(x_)[static_cast<std::size_t>(axis)];
  }

  // The dimension of x.
  std::int64_t own(std::int64_t axis) const {
    axis += axis < 0 ? std::ssize(order_) : 0;
    if (axis < 0 || axis >= std::ssize(order_)) call_.fail("an axis is out of range");
    return order_[static_cast<std::size_t>(axis)];
  }

  std::int64_t within(std::int64_t place, std::int64_t axis) const {
    place += place < 0 ? size_of(axis) : 0;
    if (place < 0 || place >= size_of(axis)) call_.fail("an index is out of range");
    return place;
  }

  NodeId places_of(std::int64_t axis) {
    if (axis == 0) call_.fail("the batch cannot be taken apart");
    auto places = call_.integers(1);
    for (auto& place : places) place = within(place, axis);
    return pick(call_, x_, axis, places);
  }

  Slice cut(std::int64_t axis, std::int64_t first, std::int64_t last) const {
    if (axis == 0) call_.fail("the batch cannot be taken apart");
    return {axis, first, last};
  }

  // x without its dimension `axis`, which is 1.
  void bind_without(NodeId x, std::int64_t axis, std::size_t output) {
    if (axis == 0) call_.fail("the batch cannot be dropped");
    auto dims = call_.shape(x);
    dims.erase(dims.begin() + axis);
    dims.erase(dims.begin());
    Dims order;
    for (const auto one : order_)
      if (one != axis) order.push_back(one - (one > axis ? 1 : 0));
    const Node& node = call_.model().graph[x];
    const bool back = is<Reshape>(node) && without_batch(call_.shape(node.inputs[0])) == dims;
    bind_permuted(call_, back ? node.inputs[0] : call_.part(Reshape{dims}, {x}), order, output);
  }

  static Dims without_batch(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }

  Call& call_;
  const NodeId x_;
  const Dims order_;
};

// Add or Mul of such a value and a constant of one element.
bool combine_with_number(Call& call) {
  const auto& type = call.node().op_type;
  if ((type != "Add" && type != "Mul") || !call.has(0) || !call.has(1)) return false;
  const std::size_t input = call.value(0).permuted ? 0 : 1;
  const std::size_t other = 1 - input;
  if (!call.value(input).permuted || !call.is_constant(other) || call.constant(other).numel() != 1)
    return false;
  const double number = call.scalar(other);
  if (type == "Add")
    Permuted(call, input).combine(Add{}, number, 0);
  else
    Permuted(call, input).combine(Mul{}, number, 1);
  return true;
}

}  // namespace

void bind_permuted(Call& call, NodeId x, const Dims& order, std::size_t output) {
  if (order.empty() || order[0] != 0) {
    Value value{x, {}};
    value.permuted = order;
    return call.bind(std::move(value), output);
  }
  const bool same = std::ranges::is_sorted(order);
  call.bind({same ? x : call.part(Transpose{order}, {x}), {}}, output);
}

bool convert_permuted(Call& call) {
  if (combine_with_number(call)) return true;
  if (!call.has(0) || !call.value(0).permuted) return false;
  const auto& type = call.node().op_type;
  if (type == "Transpose")
    Permuted(call).transpose();
  else if (type == "Gather" && call.is_constant(1))
    Permuted(call).gather();
  else if (type == "GatherND" && call.is_constant(1))
    Permuted(call).gather_nd();
  else if (type == "Slice" && call.has(3))
    Permuted(call).slice();
  else if (type == "Split")
    Permuted(call).split();
  else if (type == "Squeeze")
    Permuted(call).squeeze();
  else
    return false;
  return true;
}

}  // namespace zsq::models::onnx
