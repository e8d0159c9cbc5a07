// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/average_pool.h"

#include <algorithm>

#include "exporters/tflite/arithmetic.h"
#include "exporters/tflite/layout.h"
#include "exporters/tflite/windows.h"

namespace zsq::exporters::tflite {
namespace {

Windows windows_of(const models::AvgPool& op, const models::Shape& out_shape) {
  return {op.kernel, op.stride, {1, 1}, op.pads, {out_shape[2], out_shape[3]}};
}

// By what the window divides along dimension d: its elements on the map, and on the pads that the
// network has (not on those of ceil_mode) where these count.
std::int64_t counted(const models::AvgPool& op, const Sizes& map, std::size_t d,
                     std::int64_t window) {
  const std::int64_t from = window * op.stride[d] - op.pads[d], to = from + op.kernel[d];
  const std::int64_t size = map[1 + d];
  if (op.count_include_pad) return std::min(to, size + op.pads[d + 2]) - from;
  return std::min(to, size) - std::max<std::int64_t>(from, 0);
}

}  // namespace

bool counts_all(const models::AvgPool& op, const Sizes& map, const models::Shape& out_shape) {
  for (std::size_t d = 0; d < 2; ++d)
    for (std::int64_t i = 0; i < out_shape[2 + d]; ++i)
      if (counted(op, map, d, i) != op.kernel[d]) return false;
  return true;
}

TensorId float_average_pool(Builder& builder, const models::AvgPool& op, TensorId x,
                            const models::Shape& out_shape, const std::string& name) {
  const Sizes map = builder.shape(x);
  const Windows windows = windows_of(op, out_shape);
  const TensorId padded = pad_map(builder, x, full_pads(map, windows), PadWith::zero, name);
  Pool2DOptionsT options;
  options.padding = Padding::VALID;
  options.filter_height = static_cast<int>(op.kernel[0]);
  options.filter_width = static_cast<int>(op.kernel[1]);
  options.stride_h = static_cast<int>(op.stride[0]);
  options.stride_w = static_cast<int>(op.stride[1]);
  const TensorId mean = builder.node(BuiltinOperator::AVERAGE_POOL_2D, options_of(options),
                                     {padded}, name, stored_shape(out_shape));
  if (counts_all(op, map, out_shape)) return mean;
  std::vector<float> factors;
  for (std::int64_t row = 0; row < windows.out[0]; ++row)
    for (std::int64_t column = 0; column < windows.out[1]; ++column)
      factors.push_back(static_cast<float>(op.kernel[0] * op.kernel[1]) /
                        static_cast<float>(counted(op, map, 0, row) * counted(op, map, 1, column)));
  const TensorId factor = builder.constant(
      name + ".factors", formats::Array::from<float>(
                             formats::DType::f32, {1, windows.out[0], windows.out[1], 1}, factors));
  return multiply(builder, mean, factor, name + ".of_counted");
}

TensorId integer_average_pool(Builder& builder, const models::AvgPool& op, TensorId x,
                              const models::Shape& out_shape, const Grid& grid,
                              const std::string& name) {
  const Windows windows = windows_of(op, out_shape);
  const models::Pads pads = full_pads(builder.shape(x), windows);
  const ScaledSum sum{1.0 / static_cast<double>(op.kernel[0] * op.kernel[1]),
                      0,
                      {},
                      op.kernel,
                      op.stride,
                      windows.out};
  return scaled_sum(builder, pad_map(builder, x, pads, PadWith::zero, name), sum, grid, name);
}

}  // namespace zsq::exporters::tflite
