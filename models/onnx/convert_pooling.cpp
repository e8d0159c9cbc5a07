// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"
#include "models/onnx/window.h"

namespace zsq::models::onnx {

void convert_max_pool(Call& call) {
  auto x = call.activation(0);
  const auto window = read_window(call, x);
  MaxPool pool{window.kernel, window.stride, window.pads, window.dilation, window.ceil_mode};
  if (!pool.ceil_mode) {
    x = absorb_pad(call.model().graph, x, -std::numeric_limits<double>::infinity(), pool.pads);
  }
  call.emit(pool, {x});
}

void convert_average_pool(Call& call) {
  auto x = call.activation(0);
  const auto window = read_window(call, x);
  if (window.dilation != Pair{1, 1}) call.fail("dilations are not known");
  if (window.kernel == Pair{1, 1} && window.stride == Pair{1, 1} && window.pads == Pads{}) {
    return call.bind({x, {}});
  }
  if (window.covers(call.shape(x))) {
    call.emit(GlobalAvgPool{}, {x});
    return;
  }
  AvgPool pool{window.kernel, window.stride, window.pads, window.ceil_mode,
               call.integer("count_include_pad", 0) != 0};
  if (!pool.ceil_mode && (pool.count_include_pad || pool.pads == Pads{})) {
    const auto before = x;
    x = absorb_pad(call.model().graph, x, 0, pool.pads);
    if (x != before) pool.count_include_pad = true;
  }
  call.emit(pool, {x});
}

void convert_global_average_pool(Call& call) { call.emit(GlobalAvgPool{}, {call.activation(0)}); }

void convert_reduce_mean(Call& call) {
  const auto x = call.activation(0);
  auto axes = call.integers_of("axes", 1).value_or(std::vector<std::int64_t>{});
  for (auto& axis : axes) axis += axis < 0 ? 4 : 0;
  std::sort(axes.begin(), axes.end());
  if (call.shape(x).size() != 4 || axes != std::vector<std::int64_t>{2, 3}) {
    call.fail("only the mean over height and width is known");
  }
  call.emit(GlobalAvgPool{call.integer("keepdims", 1) != 0}, {x});
}

namespace {

// Scales of height and width, from the scales or the sizes of all four dimensions.
std::vector<double> resize_scales(Call& call, const Shape& shape) {
  std::vector<double> scales;
  const std::size_t at = call.node().op_type == "Upsample" || call.opset() < 11 ? 1 : 2;
  if (call.has(at) && call.constant(at).numel() > 0) {
    const auto tensor = call.constant(at).to(at::kDouble).contiguous();
    scales.assign(tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel());
  } else if (call.has(3)) {
    const auto sizes = call.integers(3);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const bool batch = i == 0 && call.is_batch(sizes[0]);
      scales.push_back(batch ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(shape[i]));
    }
  }
  if (scales.size() != 4 || scales[0] != 1 || scales[1] != 1) {
    call.fail("scales or sizes for height and width were expected");
  }
  return {scales[2], scales[3]};
}

}  // namespace

void convert_resize(Call& call) {
  const auto x = call.activation(0);
  Resize resize{{1, 1}};
  const auto scales = resize_scales(call, call.shape(x));
  for (std::size_t i = 0; i < 2; ++i) {
    if (!(scales[i] >= 1 && scales[i] <= kMaxExtent) || scales[i] != std::floor(scales[i])) {
      call.fail("only whole upscaling factors are known");
    }
    resize.scale[i] = std::llround(scales[i]);
  }
  // With whole factors, floor(o / s) is what all of these pick.
  const auto coordinates =
      call.text("coordinate_transformation_mode", call.opset() < 11 ? "asymmetric" : "half_pixel");
  const auto nearest =
      call.text("nearest_mode", call.opset() < 11 ? "floor" : "round_prefer_floor");
  const bool asymmetric = coordinates == "asymmetric" && nearest == "floor";
  const bool centred = (coordinates == "half_pixel" || coordinates == "pytorch_half_pixel") &&
                       nearest.rfind("round_prefer_", 0) == 0;
  if (call.text("mode", "nearest") != "nearest" || !(asymmetric || centred)) {
    call.fail("only nearest-neighbour upscaling is known");
  }
  call.emit(resize, {x});
}

}  // namespace zsq::models::onnx
