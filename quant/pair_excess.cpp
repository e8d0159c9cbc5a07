// SPDX-License-Identifier: Apache-2.0
#include "quant/pair_excess.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "cuda_kernels/cpu_loops.h"

namespace zsq::quant {
namespace {

struct RowGrid {
  float scale, lowest, highest;  // of q - zero_point
  float bound;
};

// To the nearest whole number, ties to even, for |x| < 2^22: at 1.5 * 2^23 floats are whole.
ZSQ_INLINED float to_whole(float x) {
  constexpr float kWhole = 12582912;
  return (x + kWhole) - kWhole;
}

ZSQ_INLINED float code(float weight, const RowGrid& grid) {
  const float steps = weight / grid.scale;
  return to_whole(steps < grid.lowest ? grid.lowest : steps > grid.highest ? grid.highest : steps);
}

// `row`: 2 * pairs weights in the order in which they are neighbours.
ZSQ_VECTORIZED bool is_beyond(const float* row, std::int64_t pairs, const RowGrid& grid) {
  int beyond = 0;
  for (std::int64_t j = 0; j < pairs; ++j) {
    const float first = code(row[2 * j], grid), second = code(row[2 * j + 1], grid);
    const float sum = first + second;  // of one sign, else it is smaller than one of them
    const float size = sum < 0 ? -sum : sum;
    beyond |= int{first * second > 0} & int{size > grid.bound};
  }
  return beyond != 0;
}

}  // namespace

bool may_exceed_pair_bound(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                           const QuantizerSpec& spec) {
  const bool plain = weight.is_cpu() && weight.scalar_type() == at::kFloat &&
                     weight.is_contiguous() && weight.numel() > 0 &&
                     grid.scale.scalar_type() == at::kFloat &&
                     grid.zero_point.scalar_type() == at::kFloat;
  if (!plain) return true;
  const std::int64_t rows = weight.size(0), length = weight.numel() / rows;
  const std::int64_t channels = weight.dim() == 4 ? weight.size(1) : length;
  const std::int64_t places = length / channels, pairs = (length + 1) / 2;
  const at::Tensor scales = grid.scale.contiguous(), zeros = grid.zero_point.contiguous();
  const float* values = weight.const_data_ptr<float>();
  const float* scale = scales.const_data_ptr<float>();
  const float* zero = zeros.const_data_ptr<float>();
  std::atomic<bool> found = false;
  const std::int64_t grain = std::max<std::int64_t>(1, cuda_kernels::kGrain / length);
  at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> in_order(static_cast<std::size_t>(2 * pairs));  // an odd one is beside a 0
    for (std::int64_t r = begin; r < end && !found; ++r) {
      const float* row = values + r * length;
      for (std::int64_t p = 0; p < places; ++p)
        for (std::int64_t c = 0; c < channels; ++c)
          in_order[static_cast<std::size_t>(p * channels + c)] = row[c * places + p];
      const float shift = zero[zeros.numel() > 1 ? r : 0];
      const RowGrid of_row{scale[scales.numel() > 1 ? r : 0], static_cast<float>(spec.qmin) - shift,
                           static_cast<float>(spec.qmax) - shift,
                           static_cast<float>(spec.pair_bound)};
      if (is_beyond(in_order.data(), pairs, of_row)) found = true;
    }
  });
  return found;
}

}  // namespace zsq::quant
