// SPDX-License-Identifier: Apache-2.0
// Two passes over the weights: the ratios, of which the m-th smallest gives k, and the update. Most
// weights are far from being among the m, which shows without a division, from w times 1 / scale;
// those keep their code too, so that the second pass compares codes in the remaining blocks alone.
// What is too close to tell is worked out by inundation_math.h, so results are those of the
// divisions.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/inundation_implementations.h"

namespace zsq::cuda_kernels {
namespace {

ZSQ_VECTORIZED void ratio_run(const float* __restrict weight, const float* __restrict step,
                              float* __restrict ratios, std::int64_t n, UniformGrid grid) {
  for (std::int64_t i = 0; i < n; ++i) ratios[i] = crossing_ratio(weight[i], step[i], grid, 0.0f);
}

// The grid of a run. `inverse` is 1 / scale, NaN if that is no normal float: then nothing is
// certain and all is worked out.
struct RunGrid : UniformGrid {
  float inverse, spare;
};

// Of w times 1 / scale, relative to its size and to the codes': covers the roundings of product,
// inverse, threshold and ratio, under 2^-20 together.
constexpr float kMargin = 1.0f / (1 << 19);

RunGrid run_grid(const GridView& grid, std::int64_t channel) {
  const UniformGrid own = grid.at(channel);
  const float inverse = 1 / own.scale;
  const bool normal = std::fabs(inverse) >= kSmallestNormal && is_finite(inverse);
  return {own, normal ? inverse : kNan, kMargin * (1 + std::fabs(own.zero_point))};
}

// The code of w, and by how much w / scale may be off; unsure (an integer, for vectors) where w is
// that close to a tie.
struct QuickCode {
  float ratio, code, margin;
  std::int32_t unsure;
};
ZSQ_HOST_DEVICE QuickCode quick_code(float w, const RunGrid& grid) {
  const float ratio = w * grid.inverse, nearest = rintf(ratio);
  const float margin = kMargin * fabsf(ratio) + grid.spare;
  return {ratio, clamp(nearest + grid.zero_point, grid.range.min, grid.range.max), margin,
          !(fabsf(ratio - nearest) < 0.5f - margin)};
}

constexpr std::int64_t kBlock = 64;

// For each block of kBlock whether any ratio may be up to `bound`, so that a step times `bound` may
// change a code; false where a step is not finite.
ZSQ_VECTORIZED bool find_blocks(const float* __restrict weight, const float* __restrict velocity,
                                const float* __restrict gradient, std::int32_t* __restrict found,
                                std::int64_t n, RunGrid grid, InundationStep args, float bound) {
  const float reach = bound * (1 + kMargin) * grid.inverse;
  std::int32_t bad = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = begin + kBlock < n ? begin + kBlock : n;
    std::int32_t any = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const float v = next_velocity(velocity[i], gradient[i], args.momentum);
      const float step = nesterov_step(v, gradient[i], args);
      bad |= !is_finite(step);
      const QuickCode quick = quick_code(weight[i], grid);
      const float gap = quick.ratio + grid.zero_point - quick.code;
      const float steps = (step > 0 ? gap : -gap) + 0.5f;  // of the grid, to the threshold
      any |= quick.unsure | !(steps > fabsf(step) * reach + quick.margin);
    }
    found[begin / kBlock] = any;
  }
  return bad == 0;
}

// The ratios of the coming step.
ZSQ_VECTORIZED void plan_run(const float* __restrict weight, const float* __restrict velocity,
                             const float* __restrict gradient, float* __restrict ratios,
                             std::int64_t n, RunGrid grid, InundationStep args) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = next_velocity(velocity[i], gradient[i], args.momentum);
    const float step = nesterov_step(v, gradient[i], args);
    ratios[i] = crossing_ratio<UniformGrid>(weight[i], step, grid, kPastThreshold);
  }
}

// Moves weights of which none changes its code.
ZSQ_VECTORIZED void move_run(float* __restrict weight, float* __restrict velocity,
                             const float* __restrict gradient, std::int64_t n, float limit,
                             InundationStep args, float k) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = next_velocity(velocity[i], gradient[i], args.momentum);
    velocity[i] = v;
    weight[i] = inundated_weight(weight[i], nesterov_step(v, gradient[i], args), k, limit);
  }
}

// Moves n <= kRun weights and gives the number of codes that changed.
constexpr std::int64_t kRun = 1024;
ZSQ_VECTORIZED std::int64_t update_run(float* __restrict weight, float* __restrict velocity,
                                       const float* __restrict gradient, std::int64_t n,
                                       RunGrid grid, float limit, InundationStep args, float k) {
  float before[kRun];
  std::int32_t crossings = 0, unsure = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float w = weight[i], v = next_velocity(velocity[i], gradient[i], args.momentum);
    const float moved = inundated_weight(w, nesterov_step(v, gradient[i], args), k, limit);
    before[i] = w;
    velocity[i] = v;
    weight[i] = moved;
    const QuickCode from = quick_code(w, grid), to = quick_code(moved, grid);
    crossings += from.code != to.code;
    unsure |= from.unsure | to.unsure;
  }
  if (!unsure) return crossings;
  crossings = 0;
  for (std::int64_t i = 0; i < n; ++i)
    crossings += grid.encode(before[i]) != grid.encode(weight[i]);
  return crossings;
}

// At least the m smallest of the ratios up to `bound` that were added, or all where those are
// fewer.
class Smallest {
 public:
  Smallest(std::int64_t m, float bound) : m_(m), bound_(bound) {}

  float bound() const { return bound_; }
  const std::vector<float>& found() const { return found_; }
  void add(const float* ratios, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      if (ratios[i] <= bound_) found_.push_back(ratios[i]);
    if (std::ssize(found_) < 2 * m_ + kBlock) return;
    bound_ = mth();
    found_.resize(static_cast<std::size_t>(m_));
  }
  // The m-th smallest; infinite where there are not so many.
  float mth() {
    if (std::ssize(found_) < m_) return kInfinity;
    std::nth_element(found_.begin(), found_.begin() + (m_ - 1), found_.end());
    return found_[static_cast<std::size_t>(m_ - 1)];
  }

 private:
  std::int64_t m_;
  float bound_;
  std::vector<float> found_;
};

// What is known of a layer's ratios, by all threads.
struct Search {
  const InundationView* layer;
  float bound;  // of the ratios that are looked for
  Smallest smallest{layer->m, bound};
  // For each kBlock weights whether a code may change. Runs of channels begin within such blocks,
  // so two threads may set one.
  std::vector<std::uint8_t> close = std::vector<std::uint8_t>(layer->n / kBlock + 1);
  bool finite = true;

  void set_close(std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin / kBlock; block * kBlock < end; ++block)
      std::atomic_ref(close[block]).store(1, std::memory_order_relaxed);
  }
};

// The ratios of elements [begin, end) that are small enough to matter; false where a step is not
// finite.
bool search_share(Search& search, std::int64_t begin, std::int64_t end, InundationStep args,
                  Smallest& smallest) {
  const InundationView& layer = *search.layer;
  bool finite = true;
  split_into_runs(begin, end, layer.grid.channels, layer.grid.inner,
                  [&](std::int64_t c, std::int64_t first, std::int64_t stop) {
                    const RunGrid grid = run_grid(layer.grid, c);
                    for (std::int64_t i = first; i < stop && finite; i += kRun) {
                      const std::int64_t n = std::min(kRun, stop - i);
                      std::int32_t found[kRun / kBlock];
                      const float bound = std::max(smallest.bound(), 1.0f);  // k is no smaller
                      finite = find_blocks(layer.weight + i, layer.velocity + i, layer.gradient + i,
                                           found, n, grid, args, bound);
                      for (std::int64_t block = 0; block < n; block += kBlock) {
                        if (!found[block / kBlock]) continue;
                        float ratios[kBlock];
                        const std::int64_t count = std::min(kBlock, n - block), at = i + block;
                        search.set_close(at, at + count);
                        plan_run(layer.weight + at, layer.velocity + at, layer.gradient + at,
                                 ratios, count, grid, args);
                        smallest.add(ratios, count);
                      }
                    }
                  });
  return finite;
}

// k of each layer, 1 if a step is not finite. Ratios above k_max make no difference.
void search(std::vector<Search>& all, InundationStep args) {
  std::vector<Search*> pending;
  for (Search& one : all) pending.push_back(&one);
  while (!pending.empty()) {
    std::mutex mutex;
    std::vector<std::int64_t> sizes;
    for (const Search* one : pending) sizes.push_back(one->layer->n);
    share_layers(sizes, kGrain, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
      Search& one = *pending[i];
      Smallest own(one.layer->m, one.bound);
      const bool finite = search_share(one, begin, end, args, own);
      const std::lock_guard lock(mutex);
      one.smallest.add(own.found().data(), std::ssize(own.found()));
      one.finite = one.finite && finite;
    });
    // Where last_k was too low a guess, everything is looked at.
    std::erase_if(pending, [&](Search* one) {
      return !one->finite || one->bound >= args.k_max || one->smallest.mth() < kInfinity;
    });
    for (Search* one : pending) *one = {one->layer, args.k_max};
  }
}

// Moves the weights of a run and gives the number of codes that changed.
std::int64_t update_share(const Search& search, std::int64_t begin, std::int64_t end,
                          const RunGrid& grid, InundationStep args, float k) {
  const InundationView& layer = *search.layer;
  const float limit = args.c_max * grid.scale;
  std::int64_t crossings = 0;
  while (begin < end) {
    std::int64_t block = begin / kBlock;
    const bool is_close = search.close[block];
    const std::int64_t most = is_close ? std::min(end, begin + kRun - kBlock) : end;
    while ((block + 1) * kBlock < most && search.close[block + 1] == search.close[block]) ++block;
    const std::int64_t n = std::min(end, (block + 1) * kBlock) - begin;
    float *weight = layer.weight + begin, *velocity = layer.velocity + begin;
    if (is_close)
      crossings += update_run(weight, velocity, layer.gradient + begin, n, grid, limit, args, k);
    else
      move_run(weight, velocity, layer.gradient + begin, n, limit, args, k);
    begin += n;
  }
  return crossings;
}

void inundate_group(std::span<const InundationView> layers, InundationStep args,
                    const float* last_k, InundationOutcome outcome) {
  std::vector<Search> searches;
  for (const InundationView& layer : layers) {
    constexpr float kRoom = 2;  // for k to grow since the last step
    const float guess = last_k ? kRoom * last_k[layer.index] : args.k_max;
    searches.push_back({&layer, guess < args.k_max ? guess : args.k_max});
  }
  search(searches, args);
  for (Search& one : searches) {
    if (one.finite) outcome.k[one.layer->index] = inundation_factor(one.smallest.mth(), args.k_max);
    outcome.skipped[one.layer->index] = !one.finite;
  }
  std::mutex mutex;
  std::vector<std::int64_t> sizes;
  for (const InundationView& layer : layers) sizes.push_back(layer.n);
  share_layers(sizes, kGrain, [&](std::size_t index, std::int64_t first, std::int64_t last) {
    const InundationView& layer = layers[index];
    if (outcome.skipped[layer.index]) return;
    std::int64_t crossings = 0;
    split_into_runs(first, last, layer.grid.channels, layer.grid.inner,
                    [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                      crossings +=
                          update_share(searches[index], begin, end, run_grid(layer.grid, c), args,
                                       outcome.k[layer.index]);
                    });
    const std::lock_guard lock(mutex);
    outcome.crossings[layer.index] += crossings;
  });
}

}  // namespace

void crossing_ratios_cpu(const float* weight, const float* step, float* ratios, std::int64_t n,
                         const GridView& grid) {
  for_each_run(n, grid.channels, grid.inner, [&](std::int64_t c, std::int64_t i, std::int64_t end) {
    ratio_run(weight + i, step + i, ratios + i, end - i, grid.at(c));
  });
}

void inundate_cpu(const std::vector<InundationView>& all, InundationStep args, const float* last_k,
                  InundationOutcome outcome) {
  // Layers share both passes as long as the second finds in the cache what the first has read.
  constexpr std::int64_t kTogether = 1 << 19;
  std::span<const InundationView> layers(all);
  while (!layers.empty()) {
    std::size_t count = 1;
    std::int64_t weights = layers[0].n;
    while (count < layers.size() && weights + layers[count].n <= kTogether)
      weights += layers[count++].n;
    inundate_group(layers.first(count), args, last_k, outcome);
    layers = layers.subspan(count);
  }
}

}  // namespace zsq::cuda_kernels
