// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/inundation_twins.h"

namespace zsq::cuda_kernels {
namespace {

ZSQ_VECTORIZED void ratio_run(const float* __restrict weight, const float* __restrict step,
                              float* __restrict ratios, std::int64_t n, float scale,
                              float zero_point, CodeRange range) {
  for (std::int64_t i = 0; i < n; ++i)
    ratios[i] = crossing_ratio(weight[i], step[i], scale, zero_point, range, 0.0f);
}

// One layer's grid and tensors.
struct Layer {
  const float *weight, *velocity, *gradient;
  std::int64_t n;
  const GridView& grid;
  InundationStep args;
};

constexpr std::int64_t kBlock = 256;

// The ratios of the coming step, n <= kBlock of them, and their smallest; whether every step is
// finite.
struct BlockPlan {
  float smallest;
  bool finite;
};
ZSQ_VECTORIZED BlockPlan plan_block(const float* __restrict weight,
                                    const float* __restrict velocity,
                                    const float* __restrict gradient, float* __restrict ratios,
                                    std::int64_t n, float scale, float zero_point, CodeRange range,
                                    InundationStep args) {
  std::int32_t bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = next_velocity(velocity[i], gradient[i], args.momentum);
    const float step = nesterov_step(v, gradient[i], args);
    bad |= !is_finite(step);
    ratios[i] = crossing_ratio(weight[i], step, scale, zero_point, range, kPastThreshold);
  }
  // Bits of a float >= 0 order like its value, and integers have a minimum that vectorises.
  std::int32_t smallest = std::bit_cast<std::int32_t>(kInfinity);
  for (std::int64_t i = 0; i < n; ++i)
    smallest = std::min(smallest, std::bit_cast<std::int32_t>(ratios[i]));
  return {std::bit_cast<float>(smallest), bad == 0};
}

// f(ratios, count, smallest) for blocks of elements [begin, end) of one channel; false where a step
// is not finite.
template <class F>
bool for_each_block(const Layer& layer, std::int64_t c, std::int64_t begin, std::int64_t end,
                    const F& f) {
  float ratios[kBlock];
  for (std::int64_t i = begin; i < end; i += kBlock) {
    const std::int64_t count = std::min(kBlock, end - i);
    const BlockPlan plan =
        plan_block(layer.weight + i, layer.velocity + i, layer.gradient + i, ratios, count,
                   layer.grid.scale[c], layer.grid.zero_point[c], layer.grid.range, layer.args);
    if (!plan.finite) return false;
    f(ratios, count, plan.smallest);
  }
  return true;
}

ZSQ_VECTORIZED std::int64_t update_run(float* __restrict weight, float* __restrict velocity,
                                       const float* __restrict gradient, std::int64_t n,
                                       float scale, float zero_point, CodeRange range,
                                       InundationStep args, float k) {
  const float limit = args.c_max * scale;
  std::int32_t crossings = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float before = weight[i];
    velocity[i] = next_velocity(velocity[i], gradient[i], args.momentum);
    weight[i] = inundated_weight(before, nesterov_step(velocity[i], gradient[i], args), k, limit);
    crossings +=
        code_of(before, scale, zero_point, range) != code_of(weight[i], scale, zero_point, range);
  }
  return crossings;
}

// A ratio that a little more than m of n are expected to stay below, from every 64th block of the
// layer. The m-th smallest is exact all the same: where too few are found, all are looked at.
float likely_bound(const Layer& layer, std::int64_t m) {
  constexpr std::int64_t kStride = 64, kSpare = 8;
  std::vector<float> sample;
  for (std::int64_t begin = 0; begin < layer.n; begin += kStride * kBlock) {
    const std::int64_t c = begin / layer.grid.inner % layer.grid.channels;
    const std::int64_t end =
        std::min({begin + kBlock, layer.n, (begin / layer.grid.inner + 1) * layer.grid.inner});
    for_each_block(layer, c, begin, end, [&](const float* ratios, std::int64_t count, float) {
      sample.insert(sample.end(), ratios, ratios + count);
    });
  }
  const double share = 1.5 * static_cast<double>(m) / static_cast<double>(layer.n);
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(sample.size())) + kSpare;
  if (rank >= sample.size()) return kInfinity;
  std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(rank),
                   sample.end());
  return sample[rank];
}

// The ratios up to `bound`, in no order; nothing where a step is not finite.
std::optional<std::vector<float>> ratios_up_to(const Layer& layer, float bound) {
  std::vector<float> found;
  std::mutex mutex;
  std::atomic<bool> finite{true};
  for_each_run(layer.n, layer.grid.channels, layer.grid.inner,
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 std::vector<float> own;
                 const auto take = [&](const float* ratios, std::int64_t count, float smallest) {
                   if (smallest > bound) return;
                   for (std::int64_t i = 0; i < count; ++i)
                     if (ratios[i] <= bound) own.push_back(ratios[i]);
                 };
                 if (!for_each_block(layer, c, begin, end, take)) finite = false;
                 if (own.empty()) return;
                 const std::lock_guard lock(mutex);
                 found.insert(found.end(), own.begin(), own.end());
               });
  if (!finite) return std::nullopt;
  return found;
}

}  // namespace

void crossing_ratios_cpu(const float* weight, const float* step, float* ratios, std::int64_t n,
                         const GridView& grid) {
  for_each_run(n, grid.channels, grid.inner, [&](std::int64_t c, std::int64_t i, std::int64_t end) {
    ratio_run(weight + i, step + i, ratios + i, end - i, grid.scale[c], grid.zero_point[c],
              grid.range);
  });
}

InundationOutcome inundate_cpu(float* weight, float* velocity, const float* gradient,
                               std::int64_t n, std::int64_t m, const GridView& grid,
                               InundationStep args) {
  const Layer layer{weight, velocity, gradient, n, grid, args};
  auto ratios = ratios_up_to(layer, likely_bound(layer, m));
  if (ratios && std::ssize(*ratios) < m) ratios = ratios_up_to(layer, kInfinity);
  if (!ratios) return {1.0f, 1, 0};
  std::nth_element(ratios->begin(), ratios->begin() + (m - 1), ratios->end());
  const float k = inundation_factor((*ratios)[static_cast<std::size_t>(m - 1)], args.k_max);
  std::atomic<std::int64_t> crossings{0};
  for_each_run(n, grid.channels, grid.inner, [&](std::int64_t c, std::int64_t i, std::int64_t end) {
    crossings += update_run(weight + i, velocity + i, gradient + i, end - i, grid.scale[c],
                            grid.zero_point[c], grid.range, args, k);
  });
  return {k, 0, crossings};
}

}  // namespace zsq::cuda_kernels
