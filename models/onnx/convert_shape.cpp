// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "models/onnx/broadcast.h"
#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"
#include "models/onnx/permuted.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

// 0 if it is too large to be the size of a tensor.
std::int64_t product(const Dims& dims) {
  std::int64_t result = 1;
  for (const auto size : dims) {
    if (__builtin_mul_overflow(result, size, &result)) return 0;
  }
  return result;
}

Dims without_batch(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }

// Axes of a tensor with `dimensions` dimensions, counted from the front, in order.
Dims from_front(const Call& call, Dims axes, std::size_t dimensions) {
  const auto count = static_cast<std::int64_t>(dimensions);
  for (auto& axis : axes) {
    axis += axis < 0 ? count : 0;
    if (axis < 1 || axis >= count) call.fail("an axis is out of range, or is the batch");
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

// A Pad of the transposed form of a map, as Keras writes before a convolution, is one of the map.
bool move_pad_to_map(Call& call, NodeId x) {
  const auto& graph = call.model().graph;
  const auto* pad = get_if<Pad>(graph[x]);
  const auto map = pad ? map_before_channels_last(graph, graph[x].inputs[0]) : -1;
  if (map < 0) return false;
  Pad moved = *pad;
  for (auto* side : {&moved.before, &moved.after})
    *side = {(*side)[0], (*side)[3], (*side)[1], (*side)[2]};
  call.emit(moved, {map});
  return true;
}

}  // namespace

void reshape_to(Call& call, NodeId x, const Dims& dims) {
  const auto now = without_batch(call.shape(x));
  if (product(now) != product(dims)) call.contradict("the number of elements would change");
  if (now == dims) return call.bind({x, {}});
  if (dims.size() == 1) {
    call.emit(Flatten{}, {x});
  } else {
    call.emit(Reshape{dims}, {x});
  }
}

void convert_shape(Call& call) {
  const bool constant = call.is_constant(0);
  const Value& x = call.value(0);
  // Codes have the shape of what they stand for.
  Dims dims = constant ? call.constant(0).sizes().vec()
                       : call.shape(x.quantized ? x.node : call.activation(0));
  if (!constant) dims[0] = kBatch;
  const auto count = static_cast<std::int64_t>(dims.size());
  const auto bound = [&](const char* attribute, std::int64_t otherwise) {
    const auto index = call.integer(attribute, otherwise);
    return std::clamp(index < 0 ? index + count : index, std::int64_t{0}, count);
  };
  const auto start = bound("start", 0), end = std::max(start, bound("end", count));
  const Dims part(dims.begin() + start, dims.begin() + end);
  const formats::Array array = formats::Array::from<std::int64_t>(
      formats::DType::i64, {end - start}, std::span<const std::int64_t>(part));
  call.bind({-1, to_tensor(array)});
}

void convert_flatten(Call& call) {
  const auto x = call.activation(0);
  const auto axis = call.integer("axis", 1);
  if (axis != 1 && axis != 1 - static_cast<std::int64_t>(call.shape(x).size())) {
    call.fail("keeps the batch apart with axis 1 only");
  }
  reshape_to(call, x, {product(without_batch(call.shape(x)))});
}

namespace {

// Tokens of all images in one matrix, also as codes: what this engine's exporter writes before a
// Gemm.
bool makes_matrix(Call& call) {
  Value value = call.value(0);
  if (value.node < 0 || value.is_matrix || value.permuted || value.flattened) return false;
  const auto& shape = call.shape(value.node);
  if (shape.size() < 3 || call.integers(1) != Dims{-1, shape.back()}) return false;
  if (product(without_batch(shape)) == shape.back()) return false;  // one token: a row per image
  value.is_matrix = true;
  call.bind(std::move(value));
  return true;
}

}  // namespace

void convert_reshape(Call& call) {
  if (makes_matrix(call)) return;
  const auto x = call.activation(0);
  const auto now = call.shape(x);
  auto target = call.integers(1);
  if (target.empty()) call.fail("the batch would vanish");
  if (target == Dims{-1}) {
    Value row;
    row.flattened = x;
    return call.bind(std::move(row));
  }
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] != 0 || call.integer("allowzero", 0) != 0) continue;
    if (i >= now.size()) call.fail("a 0 in the shape points behind the input's dimensions");
    target[i] = i == 0 ? kBatch : now[i];
  }
  Dims dims(target.begin() + 1, target.end());
  const auto elements = product(without_batch(now));
  const bool same_batch =
      call.is_batch(target[0]) || (target[0] == -1 && product(dims) == elements);
  const auto sizes = [&](std::int64_t size) { return size >= -1 && size <= elements; };
  if (!same_batch || !std::all_of(dims.begin(), dims.end(), sizes)) {
    const auto row = product(dims);
    const auto images = std::max<std::int64_t>(call.fixed_batch(), 1);
    if (target[0] == -1 && row > 0 && images * elements % row != 0)
      call.contradict("rows of " + std::to_string(row) +
                      " elements cannot be made of images with " + std::to_string(elements));
    call.fail("the shape must keep the batch first and the number of elements of an image");
  }
  const auto open = std::find(dims.begin(), dims.end(), -1);
  if (open != dims.end()) {
    const auto others = -product(dims);
    if (others < 1) call.fail("the shape cannot be resolved");
    *open = elements / others;
  }
  reshape_to(call, x, dims);
}

void convert_squeeze(Call& call) {
  const auto x = call.activation(0);
  const auto now = call.shape(x);
  auto axes = call.integers_of("axes", 1);
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 1; i < now.size(); ++i) {
      if (now[i] == 1) axes->push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto dropped = from_front(call, *axes, now.size());
  Dims dims;
  for (std::size_t i = 1; i < now.size(); ++i) {
    const bool drop = std::count(dropped.begin(), dropped.end(), i) > 0;
    if (!drop) dims.push_back(now[i]);
    if (drop && now[i] != 1) call.contradict("a dimension to be dropped is not 1");
  }
  reshape_to(call, x, dims);
}

void convert_unsqueeze(Call& call) {
  const auto x = call.activation(0);
  auto dims = without_batch(call.shape(x));
  const auto axes = call.integers_of("axes", 1).value_or(Dims{});
  const auto rank = static_cast<std::int64_t>(call.shape(x).size());
  if (axes == Dims{0} || axes == Dims{-rank - 1}) {
    dims.insert(dims.begin(), 1);
    Dims order(static_cast<std::size_t>(rank) + 1);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[1]);
    return bind_permuted(call, call.part(Reshape{dims}, {x}), order);
  }
  for (const auto axis : from_front(call, axes, call.shape(x).size() + axes.size())) {
    dims.insert(dims.begin() + (axis - 1), 1);
  }
  reshape_to(call, x, dims);
}

void convert_transpose(Call& call) {
  const auto x = call.activation(0);
  const auto perm = call.integers("perm").value_or(Dims{});
  if (perm.size() != call.shape(x).size()) call.fail("the permutation must name all dimensions");
  auto sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) call.fail("no permutation of the dimensions");
  }
  if (perm[0] != 0) return bind_permuted(call, x, perm);
  if (sorted == perm) return call.bind({x, {}});
  const auto map = map_before_channels_last(call.model().graph, x);
  if (map >= 0 && perm == Dims{0, 3, 1, 2}) return call.bind({map, {}});
  if (perm == Dims{0, 3, 1, 2} && move_pad_to_map(call, x)) return;
  call.emit(Transpose{perm}, {x});
}

namespace {

// What Concat makes of its constants: pads of the activations beside them, and values in these.
struct FilledParts {
  std::vector<NodeId> parts;
  at::Tensor values;  // [1, ...], of the whole; 0 where the activations are
};

// [1, ...] with the sizes of an activation but along the axis.
at::Tensor constant_part(const Call& call, std::size_t input, const Shape& shape,
                         std::int64_t axis) {
  auto constant = without_batch_rows(call, call.constant(input), shape.size()).to(at::kFloat);
  auto expected = shape;
  expected[0] = 1;
  if (constant.dim() == std::ssize(shape))
    expected[static_cast<std::size_t>(axis)] = constant.size(axis);
  if (constant.sizes() != at::IntArrayRef(expected))
    call.fail("the sizes of a constant do not fit those of the image");
  return constant;
}

FilledParts fill_parts(Call& call, const Shape& shape, std::int64_t axis) {
  FilledParts filled;
  std::vector<at::Tensor> values;
  std::vector<Pad> pads;
  std::int64_t before = 0;  // of the first activation
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    if (!call.is_constant(i)) {
      filled.parts.push_back(call.activation(i));
      pads.push_back({Dims(shape.size(), 0), Dims(shape.size(), 0)});
      auto zeros = call.shape(filled.parts.back());
      zeros[0] = 1;
      call.charge(static_cast<double>(product(zeros)), at::kFloat);
      values.push_back(at::zeros(zeros, at::kFloat));
      continue;
    }
    values.push_back(constant_part(call, i, shape, axis));
    (pads.empty() ? before : pads.back().after[static_cast<std::size_t>(axis)]) +=
        values.back().size(axis);
  }
  pads[0].before[static_cast<std::size_t>(axis)] = before;
  for (std::size_t i = 0; i < pads.size(); ++i) {
    const auto at = static_cast<std::size_t>(axis);
    if (pads[i].before[at] + pads[i].after[at] > 0)
      filled.parts[i] = call.part(pads[i], {filled.parts[i]});
  }
  filled.values = at::cat(values, axis);
  return filled;
}

}  // namespace

void convert_concat(Call& call) {
  std::size_t first = 0;
  while (call.is_constant(first)) ++first;
  const Shape shape = call.shape(call.activation(first));
  auto axis = call.integer("axis", 1);
  axis += axis < 0 ? std::ssize(shape) : 0;
  if (axis < 1) call.fail("the batch cannot be the axis");
  if (axis >= std::ssize(shape)) call.fail("the axis is out of range");
  bool constants = false;
  for (std::size_t i = 0; i < call.inputs(); ++i) constants = constants || call.is_constant(i);
  if (!constants) {
    std::vector<NodeId> parts;
    for (std::size_t i = 0; i < call.inputs(); ++i) parts.push_back(call.activation(i));
    if (parts.size() == 1) return call.bind({parts[0], {}});
    call.emit(Concat{axis}, parts);
    return;
  }
  const auto [parts, values] = fill_parts(call, shape, axis);
  auto y = parts.size() == 1 ? parts[0] : call.part(Concat{axis}, parts);
  if (values.any().item<bool>()) y = call.part(Add{}, {y, call.made_up(values)});
  call.bind({y, {}});
}

}  // namespace zsq::models::onnx
