// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
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

// The ratios of the coming step; returns whether every step is finite.
ZSQ_VECTORIZED bool plan_run(const float* __restrict weight, const float* __restrict velocity,
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
  return bad == 0;
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

// Bits of a float >= 0 order like its value.
constexpr int kShift = 20;
std::uint32_t bin_of(float ratio) { return std::bit_cast<std::uint32_t>(ratio) >> kShift; }

// The m-th smallest of n ratios >= 0: a histogram over sign, exponent and three bits of mantissa
// says in which bin it lies, and only that bin is put in order.
float select_ratio(const float* ratios, std::int64_t n, std::int64_t m) {
  using Histogram = std::array<std::int64_t, InundationState::kBins>;
  Histogram histogram{};
  std::mutex mutex;
  at::parallel_for(0, n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    Histogram own{};
    for (std::int64_t i = begin; i < end; ++i) ++own[bin_of(ratios[i])];
    const std::lock_guard lock(mutex);
    for (std::size_t b = 0; b < own.size(); ++b) histogram[b] += own[b];
  });
  std::uint32_t bin = 0;
  for (; m > histogram[bin]; ++bin) m -= histogram[bin];
  std::vector<float> members;
  members.reserve(histogram[bin]);
  at::parallel_for(0, n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> own;
    for (std::int64_t i = begin; i < end; ++i)
      if (bin_of(ratios[i]) == bin) own.push_back(ratios[i]);
    const std::lock_guard lock(mutex);
    members.insert(members.end(), own.begin(), own.end());
  });
  std::nth_element(members.begin(), members.begin() + (m - 1), members.end());
  return members[m - 1];
}

}  // namespace

void crossing_ratios_cpu(const float* weight, const float* step, float* ratios, std::int64_t n,
                         const GridView& grid) {
  for_each_run(n, grid.channels, grid.inner, [&](std::int64_t c, std::int64_t i, std::int64_t end) {
    ratio_run(weight + i, step + i, ratios + i, end - i, grid.scale[c], grid.zero_point[c],
              grid.range);
  });
}

InundationOutcome inundate_cpu(float* weight, float* velocity, const float* gradient, float* ratios,
                               std::int64_t n, std::int64_t m, const GridView& grid,
                               InundationStep args) {
  std::atomic<bool> skipped{false};
  for_each_run(n, grid.channels, grid.inner, [&](std::int64_t c, std::int64_t i, std::int64_t end) {
    if (!plan_run(weight + i, velocity + i, gradient + i, ratios + i, end - i, grid.scale[c],
                  grid.zero_point[c], grid.range, args))
      skipped = true;
  });
  if (skipped) return {1.0f, 1, 0};
  const float k = inundation_factor(select_ratio(ratios, n, m), args.k_max);
  std::atomic<std::int64_t> crossings{0};
  for_each_run(n, grid.channels, grid.inner, [&](std::int64_t c, std::int64_t i, std::int64_t end) {
    crossings += update_run(weight + i, velocity + i, gradient + i, end - i, grid.scale[c],
                            grid.zero_point[c], grid.range, args, k);
  });
  return {k, 0, crossings};
}

}  // namespace zsq::cuda_kernels
