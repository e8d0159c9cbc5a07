// SPDX-License-Identifier: Apache-2.0
// A transposed convolution as an ordinary one. With stride s, output o (counted with the pads) is
// the sum over taps k = o mod s, o mod s + s, ... of w_k x_((o - k) / s): outputs of one remainder
// are a convolution of stride 1 with every s-th tap in reverse order. So one convolution with s_h
// s_w times the channels computes all of them; they are spread over the map and cropped.
// Source: Shi et al., "Is the deconvolution layer the same as a convolutional layer?",
// arXiv 1609.07009.
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "models/onnx/converters.h"
#include "models/onnx/rearrange.h"
#include "models/onnx/signals.h"
#include "models/onnx/window.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

struct Axis {
  std::int64_t in, taps, stride, before, out;  // taps: with dilation
  std::int64_t phase_taps() const { return (taps + stride - 1) / stride; }
  // First and last position, in steps of the stride, of which an output is kept.
  std::int64_t first() const { return std::min(before / stride, phase_taps() - 1); }
  std::int64_t end() const { return (before + out + stride - 1) / stride; }
};

Dims list_of(const Call& call, const char* attribute, std::int64_t otherwise) {
  const auto list = call.integers(attribute).value_or(Dims{otherwise, otherwise});
  const auto plausible = [](std::int64_t size) { return size >= 0 && size <= kMaxExtent; };
  if (list.size() < 2 || !std::all_of(list.begin(), list.end(), plausible))
    call.fail(std::string("attribute '") + attribute + "' must hold two numbers");
  return {list.end() - 2, list.end()};
}

// Pads and output of one dimension; `total` are the pads that an asked output leaves.
Axis read_axis(const Call& call, const Window& window, const Shape& x, std::size_t i) {
  const auto extra = list_of(call, "output_padding", 0)[i];
  const auto auto_pad = call.text("auto_pad", "NOTSET");
  Axis axis{x[i + 2], (window.kernel[i] - 1) * window.dilation[i] + 1, window.stride[i], 0, 0};
  const auto whole = (axis.in - 1) * axis.stride + axis.taps + extra;
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (call.integers("output_shape") || same) {
    axis.out =
        call.integers("output_shape") ? list_of(call, "output_shape", 0)[i] : axis.in * axis.stride;
    const auto total = whole - axis.out;
    if (total < 0) call.fail("the asked output is larger than what the windows reach");
    axis.before = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  } else {
    const auto pads = auto_pad == "VALID" ? Dims(4, 0) : call.integers("pads").value_or(Dims(4, 0));
    if (pads.size() != 4) call.fail("attribute 'pads' must hold four numbers");
    for (const auto pad : pads)
      if (pad < 0 || pad > kMaxExtent) call.fail("a negative or implausible pad");
    axis.before = pads[i];
    axis.out = whole - pads[i] - pads[i + 2];
  }
  if (axis.out < 1 || axis.out > kMaxExtent) call.fail("nothing is left of the output");
  return axis;
}

// [C_in, C, k_h, k_w] -> [C groups s_h s_w, C_in / groups, t_h, t_w].
at::Tensor phases(const at::Tensor& w, std::int64_t groups, const Window& window,
                  const std::array<Axis, 2>& axes) {
  const auto channels = w.size(1), inputs = w.size(0) / groups;
  const auto th = axes[0].phase_taps(), tw = axes[1].phase_taps();
  const auto sh = axes[0].stride, sw = axes[1].stride;
  auto whole = at::zeros({w.size(0), channels, th * sh, tw * sw}, w.options());
  whole.slice(2, 0, axes[0].taps, window.dilation[0])
      .slice(3, 0, axes[1].taps, window.dilation[1])
      .copy_(w);
  return whole.reshape({groups, inputs, channels, th, sh, tw, sw})
      .flip({3, 5})
      .permute({0, 2, 4, 6, 1, 3, 5})
      .reshape({groups * channels * sh * sw, inputs, th, tw})
      .contiguous();
}

NodeId crop(Call& call, NodeId x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  if (start == 0 && call.shape(x)[static_cast<std::size_t>(axis)] == length) return x;
  return call.part(Slice{axis, start, start + length}, {x});
}

}  // namespace

namespace {

// Of [N, C, L], as one of a map of height 1.
void transpose_signal(Call& call, NodeId x) {
  proto::Node node = call.node();
  const auto of_map = [&](const char* attribute, std::int64_t height) {
    const auto list = call.integers(attribute);
    if (!list) return;
    Dims both;
    for (const auto length : *list) both.insert(both.end(), {height, length});
    set_attribute(node, attribute, both);
  };
  for (const char* attribute : {"kernel_shape", "strides", "dilations", "output_shape"})
    of_map(attribute, 1);
  for (const char* attribute : {"pads", "output_padding"}) of_map(attribute, 0);
  act_on_map(call, node, x, {{1, {-1, call.constant(1).unsqueeze(2)}}});
}

}  // namespace

void convert_conv_transpose(Call& call) {
  auto x = call.activation(0);
  const auto& weight = call.constant(1);
  const auto shape = call.shape(x);
  if (weight.dim() == 3 && shape.size() == 3) return transpose_signal(call, x);
  const auto groups = call.integer("group", 1);
  if (weight.dim() != 4 || shape.size() != 4)
    call.fail("only convolutions over one or two dimensions are known");
  if (groups < 1 || weight.size(0) != shape[1] || weight.size(0) % groups != 0)
    call.contradict("weight and groups do not fit the input");
  const auto window = read_stride(call, {weight.size(2), weight.size(3)});
  const std::array<Axis, 2> axes{read_axis(call, window, shape, 0),
                                 read_axis(call, window, shape, 1)};
  double made = 1;  // elements of the new weight
  for (const auto& axis : axes) made *= static_cast<double>(axis.phase_taps() * axis.stride);
  call.charge(made * static_cast<double>(weight.size(0)) * static_cast<double>(weight.size(1)),
              at::kFloat);

  Conv2d conv{{1, 1}, {}, {1, 1}, groups};
  for (std::size_t i = 0; i < 2; ++i) {
    conv.pads[i] = axes[i].phase_taps() - 1 - axes[i].first();
    conv.pads[i + 2] = std::max<std::int64_t>(0, axes[i].end() - axes[i].in);
  }
  const auto name = call.layer_name(1);
  const auto block = Pair{axes[0].stride, axes[1].stride};
  std::map<std::string, std::string> params;
  params["weight"] =
      call.parameter(name, "weight", 1, phases(weight.to(at::kFloat), groups, window, axes));
  if (call.has(2)) {
    const auto& bias = call.constant(2);
    if (bias.numel() != weight.size(1) * groups) call.fail("one bias per channel was expected");
    call.charge(static_cast<double>(bias.numel() * block[0] * block[1]), at::kFloat);
    params["bias"] =
        call.parameter(name, "bias", 2, bias.reshape({-1}).repeat_interleave(block[0] * block[1]));
  }
  x = call.append(name, conv, {x}, params);
  if (block != Pair{1, 1}) x = spread_channels(call, x, block);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto start = axes[i].before - axes[i].first() * axes[i].stride;
    x = crop(call, x, static_cast<std::int64_t>(i) + 2, start, axes[i].out);
  }
  call.bind({x, {}});
}

}  // namespace zsq::models::onnx
