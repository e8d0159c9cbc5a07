// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/window.h"

#include <algorithm>

namespace zsq::models::onnx {
namespace {

// Signals [N, C, L] are maps of height 1, and their attributes hold half the numbers.
bool of_signal(const Call& call) { return call.shape(call.activation(0)).size() == 3; }

// Two positive numbers, each 1 if the attribute is absent.
Pair pair_of(const Call& call, const std::string& attribute) {
  auto list = call.integers(attribute).value_or(std::vector<std::int64_t>{1, 1});
  if (list.size() == 1 && of_signal(call)) list.insert(list.begin(), 1);
  const auto plausible = [](std::int64_t size) { return size > 0 && size <= kMaxExtent; };
  if (list.size() != 2 || !std::all_of(list.begin(), list.end(), plausible)) {
    call.fail("attribute '" + attribute + "' must hold two positive numbers");
  }
  return {list[0], list[1]};
}

Pads explicit_pads(const Call& call) {
  auto list = call.integers("pads").value_or(std::vector<std::int64_t>(4, 0));
  if (list.size() == 2 && of_signal(call)) list = {0, list[0], 0, list[1]};
  const auto plausible = [](std::int64_t size) { return size >= 0 && size <= kMaxExtent; };
  if (list.size() != 4 || !std::all_of(list.begin(), list.end(), plausible)) {
    call.fail("attribute 'pads' must hold four numbers, none negative");
  }
  return {list[0], list[1], list[2], list[3]};
}

// TensorFlow's SAME: as many outputs as ceil(size / stride); an odd pad goes to the end (UPPER).
void pad_same(const Shape& x, const Window& window, bool upper, Pads& pads) {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto size = x[i + 2], stride = window.stride[i];
    const auto extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    const auto outputs = (size + stride - 1) / stride;
    const auto total = std::max<std::int64_t>(0, (outputs - 1) * stride + extent - size);
    pads[i] = upper ? total / 2 : total - total / 2;
    pads[i + 2] = total - pads[i];
  }
}

// Most windows fit without ceil mode.
bool needs_ceil(const Call& call, const Shape& x, const Window& window) {
  if (call.integer("ceil_mode", 0) == 0) return false;
  bool exact = true;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sliding = window.along(x, i);
    const auto span = sliding.size + sliding.before + sliding.after - sliding.extent();
    exact = exact && span % sliding.stride == 0;
  }
  return !exact;
}

bool is_same(const std::string& auto_pad) {
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
}

}  // namespace

bool Window::covers(const Shape& x) const {
  return pads == Pads{} && kernel[0] == x[2] && kernel[1] == x[3];
}

Sliding Window::along(const Shape& x, std::size_t i) const {
  return {x[i + 2], kernel[i], stride[i], pads[i], pads[i + 2], dilation[i], ceil_mode};
}

Window read_stride(const Call& call, Pair kernel) {
  return {kernel, pair_of(call, "strides"), pair_of(call, "dilations"), {}, false};
}

Window read_window(const Call& call, NodeId x, Pair kernel) {
  const auto& shape = call.shape(x);
  if (shape.size() != 4) call.fail("needs an input N x C x H x W");
  auto window = read_stride(call, kernel);
  if (kernel == Pair{0, 0}) window.kernel = pair_of(call, "kernel_shape");
  const auto auto_pad = call.text("auto_pad", "NOTSET");
  if (is_same(auto_pad)) {
    pad_same(shape, window, auto_pad == "SAME_UPPER", window.pads);
  } else if (auto_pad == "NOTSET") {
    window.pads = explicit_pads(call);
  }
  window.ceil_mode = needs_ceil(call, shape, window);
  return window;
}

Window read_pool_window(const Call& call, NodeId x) {
  const auto window = read_window(call, x);
  const auto& shape = call.shape(x);
  const bool same = is_same(call.text("auto_pad", "NOTSET"));
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sliding = window.along(shape, i);
    if (!same && std::max(sliding.before, sliding.after) >= sliding.kernel)
      call.fail("a pad is as large as the window");
    // onnxruntime leaves dilations out of the pads, and pads a stride beyond the window negatively.
    const auto rest = sliding.size - (sliding.size - 1) / sliding.stride * sliding.stride;
    if (same && (sliding.dilation > 1 || rest > sliding.kernel + 1))
      call.fail(
          "auto_pad with dilations, or with a stride that passes over pixels, means another "
          "thing in each runtime: write the pads in numbers");
  }
  return window;
}

}  // namespace zsq::models::onnx
