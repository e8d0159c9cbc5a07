// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

// The window that both pools have. Without a stride it is that of the kernel.
Operation::Attributes window(const Operation& op) {
  const auto kernel = op.pair("kernel_size", 0);
  const bool strided = op.has("stride") && !op.integers("stride").empty();
  const auto padding = op.pair("padding", 0);
  return {{"kernel_shape", kernel},
          {"strides", strided ? op.pair("stride", 1) : kernel},
          {"pads", Dims{padding[0], padding[1], padding[0], padding[1]}},
          {"ceil_mode", std::int64_t{op.flag("ceil_mode", false)}}};
}

}  // namespace

Value convert_max_pool2d(const Operation& op) {
  auto attributes = window(op);
  attributes["dilations"] = op.pair("dilation", 1);
  return make_tensor(op.emit("MaxPool", {op.tensor("self")}, attributes));
}

Value convert_max_pool2d_with_indices(const Operation& op) {
  return make_list({convert_max_pool2d(op), {}});
}

// With a divisor of its own the sum of a window is the mean over its taps, pads included, times
// their number.
Value convert_avg_pool2d(const Operation& op) {
  auto attributes = window(op);
  attributes["count_include_pad"] = std::int64_t{op.flag("count_include_pad", true)};
  if (!op.has("divisor_override"))
    return make_tensor(op.emit("AveragePool", {op.tensor("self")}, attributes));
  const auto divisor = op.number("divisor_override", 1);
  if (divisor == 0) op.fail("divisor_override is 0");
  if (op.flag("ceil_mode", false)) op.fail("divisor_override with ceil_mode is not known");
  attributes["count_include_pad"] = std::int64_t{1};
  const auto kernel = op.pair("kernel_size", 0);
  const auto factor = static_cast<double>(kernel[0] * kernel[1]) / divisor;
  const auto mean = op.emit("AveragePool", {op.tensor("self")}, attributes);
  return make_tensor(op.emit("Mul", {mean, op.constant(at::scalar_tensor(factor, at::kFloat))}));
}

// [N, 1, D, H, W] with a window along D alone, as local_response_norm is traced.
Value convert_avg_pool3d(const Operation& op) {
  const auto shape = op.shape("self");
  const auto kernel = op.integers("kernel_size");
  const auto stride = op.integers("stride");
  const bool along_depth =
      shape.size() == 5 && shape[1] == 1 && kernel.size() == 3 && kernel[1] == 1 && kernel[2] == 1;
  const auto all = [](const Dims& numbers, std::int64_t wanted) {
    return std::all_of(numbers.begin(), numbers.end(), [&](auto x) { return x == wanted; });
  };
  if (!along_depth || stride.empty() || !all(stride, 1) || !all(op.integers("padding", {0}), 0) ||
      op.has("divisor_override")) {
    op.fail("is known along one dimension, in steps of 1 and without pads, only");
  }
  const auto flat = op.emit(
      "Reshape", {op.tensor("self"), op.constant({shape[0], 1, shape[2], shape[3] * shape[4]})});
  const auto mean = op.emit("AveragePool", {flat}, {{"kernel_shape", Dims{kernel[0], 1}}});
  return make_tensor(op.emit(
      "Reshape", {mean, op.constant({shape[0], 1, shape[2] - kernel[0] + 1, shape[3], shape[4]})}));
}

namespace {

constexpr std::int64_t kMaxParts = 64;

// Window o of m over n places is [floor(o n / m), ceil((o + 1) n / m)). Where all are alike, a pool
// along the axis; else a reduction of a slice each.
std::string adapt(const Operation& op, const std::string& x, std::int64_t axis, std::int64_t n,
                  std::int64_t m, bool largest) {
  if (n == m) return x;
  if (n % m == 0) {
    Dims kernel{1, 1};
    kernel[static_cast<std::size_t>(axis - 2)] = n / m;
    return op.emit(largest ? "MaxPool" : "AveragePool", {x},
                   {{"kernel_shape", kernel}, {"strides", kernel}});
  }
  if (m > kMaxParts) op.fail("makes too many windows of different sizes");
  std::vector<std::string> parts;
  for (std::int64_t o = 0; o < m; ++o) {
    const auto start = o * n / m, end = ((o + 1) * n + m - 1) / m;
    const auto slice = op.emit(
        "Slice", {x, op.constant(Dims{start}), op.constant(Dims{end}), op.constant(Dims{axis})});
    parts.push_back(op.emit(largest ? "ReduceMax" : "ReduceMean", {slice},
                            {{"axes", Dims{axis}}, {"keepdims", std::int64_t{1}}}));
  }
  return op.emit("Concat", parts, {{"axis", axis}});
}

std::string adaptive_pool(const Operation& op, bool largest) {
  const auto shape = op.shape("self");
  if (shape.size() != 4) op.fail("needs an input N x C x H x W");
  Dims size{shape[2], shape[3]};  // None keeps a side
  if (const auto* list = op.value("output_size").list(); list && list->size() == 2) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (const auto* number = (*list)[i].as<std::int64_t>()) size[i] = *number;
    }
  } else {
    size = op.pair("output_size", 1);
  }
  if (size[0] < 1 || size[1] < 1) op.fail("the sizes must be positive");
  if (size == Dims{1, 1})
    return op.emit(largest ? "GlobalMaxPool" : "GlobalAveragePool", {op.tensor("self")});
  if (shape[2] % size[0] == 0 && shape[3] % size[1] == 0) {
    const Dims kernel{shape[2] / size[0], shape[3] / size[1]};
    return op.emit(largest ? "MaxPool" : "AveragePool", {op.tensor("self")},
                   {{"kernel_shape", kernel}, {"strides", kernel}});
  }
  const auto rows = adapt(op, op.tensor("self"), 2, shape[2], size[0], largest);
  return adapt(op, rows, 3, shape[3], size[1], largest);
}

// [N, C, L] as a map of one row.
Value on_row(const Operation& op, const char* type, Operation::Attributes attributes) {
  const auto number = [&](const char* parameter, std::int64_t otherwise) {
    const auto numbers = op.integers(parameter, {otherwise});
    return numbers.empty() ? otherwise : numbers[0];
  };
  const auto kernel = number("kernel_size", 1), padding = number("padding", 0);
  attributes["kernel_shape"] = Dims{1, kernel};
  attributes["strides"] = Dims{1, number("stride", kernel)};
  attributes["pads"] = Dims{0, padding, 0, padding};
  attributes["ceil_mode"] = std::int64_t{op.flag("ceil_mode", false)};
  const auto axis = op.constant(Dims{2});
  const auto y = op.emit(type, {op.emit("Unsqueeze", {op.tensor("self"), axis})}, attributes);
  return make_tensor(op.emit("Squeeze", {y, axis}));
}

}  // namespace

Value convert_adaptive_avg_pool2d(const Operation& op) {
  return make_tensor(adaptive_pool(op, false));
}
Value convert_adaptive_max_pool2d(const Operation& op) {
  return make_list({make_tensor(adaptive_pool(op, true)), {}});
}
Value convert_max_pool1d(const Operation& op) {
  return on_row(op, "MaxPool", {{"dilations", Dims{1, op.integers("dilation", {1}).at(0)}}});
}
Value convert_avg_pool1d(const Operation& op) {
  return on_row(op, "AveragePool",
                {{"count_include_pad", std::int64_t{op.flag("count_include_pad", true)}}});
}
Value convert_adaptive_avg_pool1d(const Operation& op) {
  if (op.integers("output_size") != Dims{1}) op.fail("one output was expected");
  return make_tensor(op.emit("ReduceMean", {op.tensor("self")},
                             {{"axes", Dims{-1}}, {"keepdims", std::int64_t{1}}}));
}

}  // namespace zsq::models::aten
