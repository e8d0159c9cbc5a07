// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/squant.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "cuda_kernels/quant_math.h"
#include "quant/pair_bound.h"
#include "quant/rounding/round_to_levels.h"

namespace zsq::quant {
namespace {

using cuda_kernels::CodeRange;
using cuda_kernels::UniformGrid;

constexpr float kInsideCell =
    0.5f - 1.0f / 64;  // from the code, so that rounding errors matter not

struct RowGrid : UniformGrid {
  float lo, hi;                   // a weight that flips lies between and stays between
  const float *lowest, *highest;  // of each code, from the zero point; null: the range's ends

  bool holds(std::int64_t i, float code) const {
    if (lowest && !(code - zero_point >= lowest[i] && code - zero_point <= highest[i]))
      return false;
    return code >= range.min && code <= range.max;
  }
};

cuda_kernels::Grid on_cpu(const cuda_kernels::Grid& grid) {
  return {grid.scale.detach().cpu(), grid.zero_point.detach().cpu()};
}

// The weight on the other side of the threshold, for a nearest code (relative to the zero point)
// with error e != 0.
float mirrored(float nearest, float e, float scale) {
  const float step = std::copysign(1.0f, e);
  return (nearest - step + step * std::min(std::abs(e), kInsideCell)) * scale;
}

// One output channel.
class Row {
 public:
  Row(std::int64_t n, std::int64_t kernel) : n_(n), kernel_(kernel) {
    movable_.resize(n);
    sums_.resize(n / kernel);
  }

  void round(const float* w, const RowGrid& grid, float* out) {
    measure(w, grid);
    for (std::int64_t k = 0; k < n_ / kernel_; ++k) balance_kernel(k);
    balance_channel();
    for (std::int64_t i = 0; i < n_; ++i) {
      const float nearest = nearest_code(w[i], grid);
      const float e = nearest - w[i] / grid.scale;
      // A flip turned the sign of the error.
      out[i] = movable_[i] * e < 0 ? mirrored(nearest, e, grid.scale) : w[i];
    }
  }

 private:
  static float nearest_code(float w, const RowGrid& g) { return g.encode(w) - g.zero_point; }

  void measure(const float* w, const RowGrid& g) {
    for (std::int64_t k = 0; k < n_ / kernel_; ++k) {
      double sum = 0;
      for (std::int64_t i = k * kernel_; i < (k + 1) * kernel_; ++i) {
        const float nearest = nearest_code(w[i], g), e = nearest - w[i] / g.scale;
        const float other = nearest + g.zero_point - std::copysign(1.0f, e);
        const float moved = mirrored(nearest, e, g.scale);
        const bool flips = std::abs(e) < 1 && g.holds(i, other) && w[i] > g.lo && w[i] < g.hi &&
                           moved >= g.lo && moved <= g.hi;
        movable_[i] = flips ? e : 0;
        sum += e;
      }
      sums_[k] = sum;
    }
  }

  // The weight of the kernel whose flip lowers (sign 1) or raises (sign -1) the sum and adds least
  // to the sum of squares, and its error times sign: at most 0 if there is none.
  std::pair<std::int64_t, float> best_flip(std::int64_t kernel, float sign) const {
    std::int64_t best = kernel * kernel_;
    for (std::int64_t i = best + 1; i < (kernel + 1) * kernel_; ++i)
      if (sign * movable_[i] > sign * movable_[best]) best = i;
    return {best, sign * movable_[best]};
  }

  void flip(std::int64_t kernel, std::int64_t i, float sign) {
    movable_[i] -= sign;
    sums_[kernel] -= sign;
  }

  void balance_kernel(std::int64_t kernel) {
    while (std::abs(sums_[kernel]) > 0.5) {
      const float sign = sums_[kernel] > 0 ? 1 : -1;
      const auto [i, error] = best_flip(kernel, sign);
      if (error <= 0) return;
      flip(kernel, i, sign);
    }
  }

  void balance_channel() {
    double total = 0;
    for (const double sum : sums_) total += sum;
    if (!(std::abs(total) > 0.5)) return;
    const float sign = total > 0 ? 1 : -1;
    candidates_.clear();
    for (std::int64_t k = 0; k < n_ / kernel_; ++k) {
      if (sign * sums_[k] <= 0) continue;
      const auto [i, error] = best_flip(k, sign);
      if (error > 0) candidates_.push_back({sign * sums_[k], error, k, i});
    }
    const double wanted =
        std::min(std::ceil(std::abs(total) - 0.5), static_cast<double>(candidates_.size()));
    const auto chosen = candidates_.begin() + static_cast<std::ptrdiff_t>(wanted);
    if (chosen != candidates_.end())
      std::nth_element(candidates_.begin(), chosen, candidates_.end(),
                       [](const Candidate& a, const Candidate& b) {
                         if (a.sum != b.sum) return a.sum > b.sum;
                         return a.error != b.error ? a.error > b.error : a.element < b.element;
                       });
    for (auto c = candidates_.begin(); c != chosen; ++c) flip(c->kernel, c->element, sign);
  }

  struct Candidate {
    double sum;
    float error;
    std::int64_t kernel, element;
  };

  std::int64_t n_, kernel_;
  std::vector<float> movable_;  // errors of the weights that may flip, 0 for the others
  std::vector<double> sums_;    // of all errors, per kernel
  std::vector<Candidate> candidates_;
};

}  // namespace

at::Tensor squant(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                  const QuantizerSpec& spec, bool keep_range) {
  require_uniform(spec.format, "SQuant rounding");
  const auto w = keep_pairs(weight.detach(), grid, spec).cpu().contiguous();
  const CodeLimits limits = spec.pair_bound ? code_limits(w, on_cpu(grid), spec) : CodeLimits{};
  const std::int64_t channels = w.size(0), n = w.numel() / channels;
  const std::int64_t kernel = w.dim() == 4 ? w.size(2) * w.size(3) : 1;
  const auto per_channel = [&](const at::Tensor& t) {
    return t.detach().cpu().expand({channels}).contiguous();
  };
  const auto scale = per_channel(grid.scale), zero_point = per_channel(grid.zero_point);
  auto [lo, hi] =
      cuda_kernels::channel_min_max(grid.scale.dim() ? w.view({channels, n}) : w.view({1, -1}));
  lo = per_channel(lo);
  hi = per_channel(hi);
  auto out = at::empty_like(w);
  const float *in = w.const_data_ptr<float>(), *s = scale.const_data_ptr<float>(),
              *z = zero_point.const_data_ptr<float>(), *l = lo.const_data_ptr<float>(),
              *h = hi.const_data_ptr<float>();
  const float *lowest = nullptr, *highest = nullptr;
  if (spec.pair_bound) {
    lowest = limits.lowest.const_data_ptr<float>();
    highest = limits.highest.const_data_ptr<float>();
  }
  const CodeRange codes{static_cast<float>(spec.qmin), static_cast<float>(spec.qmax)};
  float* result = out.mutable_data_ptr<float>();
  at::parallel_for(0, channels, 1 + (1 << 14) / n, [&](std::int64_t begin, std::int64_t end) {
    Row row(n, kernel);
    for (std::int64_t c = begin; c < end; ++c) {
      const float bound = cuda_kernels::kInfinity;
      row.round(in + c * n,
                {{s[c], z[c], codes},
                 keep_range ? l[c] : -bound,
                 keep_range ? h[c] : bound,
                 lowest ? lowest + c * n : nullptr,
                 highest ? highest + c * n : nullptr},
                result + c * n);
    }
  });
  return out.to(weight.device());
}

void round_weights_by_squant(Student& student) {
  std::set<std::string> done;  // layers may share their weights
  for (const auto& site : weight_sites(student)) {
    if (site.op->spec().format != NumberFormat::uniform || !done.insert(site.parameter).second)
      continue;
    auto& weight = student.parameters.at(site.parameter);
    weight = squant(weight, site.op->grid(weight, student.parameters), site.op->spec(),
                    site.op->range_every_step());
  }
  round_weights_to_levels(student, /*cancel_errors=*/true);
}

}  // namespace zsq::quant
