// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>

#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"
#include "models/onnx/window.h"

namespace zsq::models::onnx {

namespace {

// Takes in a Pad before the pool, as long as runtimes know the pads: smaller than the window.
NodeId absorb_smaller_pad(Call& call, NodeId x, double value, Pair kernel, Pads& pads) {
  Pads wider = pads;
  const auto before = absorb_pad(call.model().graph, x, value, wider);
  for (std::size_t i = 0; i < 4; ++i) {
    if (wider[i] >= kernel[i % 2]) return x;
  }
  pads = wider;
  return before;
}

// A mean over taps with steps between them: a convolution of each channel with equal weights, which
// counts taps in the padding as zeros, and a factor per place where these do not count.
void emit_dilated_average(Call& call, NodeId x, const Window& window, bool count_include_pad) {
  const auto& shape = call.shape(x);
  const auto channels = shape[1], taps = window.kernel[0] * window.kernel[1];
  Conv2d conv{window.stride, window.pads, window.dilation, channels};
  std::array<at::Tensor, 2> counts;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sliding = window.along(shape, i);
    counts[i] = at::tensor(tap_counts(sliding, count_include_pad), at::kFloat);
    const auto end = (window_count(sliding) - 1) * sliding.stride + sliding.extent();
    conv.pads[i + 2] = std::max(sliding.after, end - sliding.before - sliding.size);
  }
  call.charge(static_cast<double>(channels) * static_cast<double>(taps), at::kFloat);
  const auto name = call.unique_name(), weight = name + ".weight";
  call.model().parameters.set(weight, at::full({channels, 1, window.kernel[0], window.kernel[1]},
                                               1.0 / static_cast<double>(taps), at::kFloat));
  auto y = call.append(name, conv, {x}, {{"weight", weight}});
  const auto share = counts[0].unsqueeze(1).mul(counts[1]).div(static_cast<double>(taps));
  if (!share.eq(1).all().item<bool>()) {
    const auto factor = call.unique_name();
    call.model().parameters.set(factor, share.reciprocal().unsqueeze(0).unsqueeze(0));
    const auto constant = call.append(factor, Parameter{}, {}, {{"value", factor}});
    y = call.append(call.unique_name(), Mul{}, {y, constant});
  }
  call.bind({y, {}});
}

NodeId as_map(Call& call) {
  const auto x = call.activation(0);
  const auto& shape = call.shape(x);
  return shape.size() == 3 ? call.part(Reshape{{shape[1], 1, shape[2]}}, {x}) : x;
}

// Without the height that as_map() gave a signal.
void bind_as_input(Call& call) {
  if (call.shape(call.activation(0)).size() != 3) return;
  const auto y = call.result();
  const auto& shape = call.shape(y);
  call.bind({call.part(Reshape{{shape[1], shape[3]}}, {y}), {}});
}

void emit_average(Call& call) {
  auto x = as_map(call);
  const auto window = read_pool_window(call, x);
  const bool count_include_pad = call.integer("count_include_pad", 0) != 0;
  if (window.kernel == Pair{1, 1} && window.stride == Pair{1, 1} && window.pads == Pads{}) {
    return call.bind({x, {}});
  }
  if (window.dilation != Pair{1, 1})
    return emit_dilated_average(call, x, window, count_include_pad);
  if (window.covers(call.shape(x))) {
    call.emit(GlobalAvgPool{}, {x});
    return;
  }
  AvgPool pool{window.kernel, window.stride, window.pads, window.ceil_mode, count_include_pad};
  if (!pool.ceil_mode && (pool.count_include_pad || pool.pads == Pads{})) {
    const auto before = x;
    x = absorb_smaller_pad(call, x, 0, pool.kernel, pool.pads);
    if (x != before) pool.count_include_pad = true;
  }
  call.emit(pool, {x});
}

}  // namespace

void convert_max_pool(Call& call) {
  auto x = as_map(call);
  const auto window = read_pool_window(call, x);
  MaxPool pool{window.kernel, window.stride, window.pads, window.dilation, window.ceil_mode};
  if (!pool.ceil_mode) {
    x = absorb_smaller_pad(call, x, -std::numeric_limits<double>::infinity(), pool.kernel,
                           pool.pads);
  }
  call.emit(pool, {x});
  bind_as_input(call);
}

void convert_average_pool(Call& call) {
  emit_average(call);
  bind_as_input(call);
}

void convert_global_average_pool(Call& call) {
  const auto x = call.activation(0);
  if (call.shape(x).size() == 3)
    call.emit(Reduce{ReduceKind::mean, {2}, true}, {x});
  else
    call.emit(GlobalAvgPool{}, {x});
}

}  // namespace zsq::models::onnx
