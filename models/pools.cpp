// SPDX-License-Identifier: Apache-2.0
#include "models/pools.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/div.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>

namespace zsq::models {
namespace {

template <class Pool>
Sliding along(const Pool& op, const at::Tensor& x, std::size_t i) {
  Sliding sliding{x.size(static_cast<std::int64_t>(i) + 2),
                  op.kernel[i],
                  op.stride[i],
                  op.pads[i],
                  op.pads[i + 2],
                  1,
                  op.ceil_mode};
  if constexpr (requires { op.dilation; }) sliding.dilation = op.dilation[i];
  return sliding;
}

// ATen's pools pad both ends alike, by half a window at most; they drop the same windows.
template <class Pool>
bool is_native(const Pool& op) {
  return op.pads[0] == op.pads[2] && op.pads[1] == op.pads[3] && 2 * op.pads[0] <= op.kernel[0] &&
         2 * op.pads[1] <= op.kernel[1];
}

// The map with `value` around it, so that the windows end where it ends.
template <class Pool>
at::Tensor fitted(const Pool& op, const at::Tensor& x, double value) {
  std::array<std::int64_t, 4> pads{};  // left, right, top, bottom
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sliding = along(op, x, i);
    const auto end = (window_count(sliding) - 1) * sliding.stride + sliding.extent();
    pads[2 - 2 * i] = sliding.before;
    pads[3 - 2 * i] = end - sliding.before - sliding.size;  // negative: places that no window reads
  }
  return at::constant_pad_nd(x, pads, value);
}

}  // namespace

std::int64_t window_count(const Sliding& sliding) {
  const auto span = sliding.size + sliding.before + sliding.after - sliding.extent();
  if (span < 0) return 0;
  const auto count = (span + (sliding.ceil_mode ? sliding.stride - 1 : 0)) / sliding.stride + 1;
  const bool begins_after_the_map = (count - 1) * sliding.stride >= sliding.size + sliding.before;
  return sliding.ceil_mode && begins_after_the_map ? count - 1 : count;
}

std::vector<std::int64_t> tap_counts(const Sliding& sliding, bool count_include_pad) {
  const auto first = count_include_pad ? -sliding.before : 0;
  const auto last = sliding.size + (count_include_pad ? sliding.after : 0);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(window_count(sliding)));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto start = static_cast<std::int64_t>(i) * sliding.stride - sliding.before;
    for (std::int64_t tap = 0; tap < sliding.kernel; ++tap) {
      const auto place = start + tap * sliding.dilation;
      counts[i] += place >= first && place < last ? 1 : 0;
    }
  }
  return counts;
}

at::Tensor max_pool(const MaxPool& op, const at::Tensor& x) {
  if (is_native(op)) {
    return at::max_pool2d(x, op.kernel, op.stride, {op.pads[0], op.pads[1]}, op.dilation,
                          op.ceil_mode);
  }
  const auto padded = fitted(op, x, -std::numeric_limits<double>::infinity());
  return at::max_pool2d(padded, op.kernel, op.stride, {0, 0}, op.dilation);
}

at::Tensor average_pool(const AvgPool& op, const at::Tensor& x) {
  if (is_native(op)) {
    return at::avg_pool2d(x, op.kernel, op.stride, {op.pads[0], op.pads[1]}, op.ceil_mode,
                          op.count_include_pad);
  }
  const auto sums = at::avg_pool2d(fitted(op, x, 0), op.kernel, op.stride, {0, 0}, false, true, 1);
  const auto counts = [&](std::size_t i) {
    return at::tensor(tap_counts(along(op, x, i), op.count_include_pad), at::kLong).to(x.options());
  };
  return at::div(sums, counts(0).unsqueeze(1) * counts(1));
}

at::Tensor pad(const Pad& op, const at::Tensor& x) {
  std::vector<std::int64_t> last_dimension_first;
  for (auto axis = op.before.size(); axis-- > 0;) {
    last_dimension_first.push_back(op.before[axis]);
    last_dimension_first.push_back(op.after[axis]);
  }
  if (op.mode == PadMode::constant) return at::constant_pad_nd(x, last_dimension_first, op.value);
  last_dimension_first.resize(4);  // height and width alone
  static constexpr const char* kModes[]{"constant", "reflect", "replicate", "circular"};
  return at::pad(x, last_dimension_first, kModes[static_cast<std::size_t>(op.mode)]);
}

}  // namespace zsq::models
