// SPDX-License-Identifier: Apache-2.0
// A row takes float where student and teacher are near enough for a form without cancellation, and
// double elsewhere. With the teacher's unnormalised probabilities e_c, Z their sum, any constant D,
// d_c = (student_c - teacher_c - D) / tau, and averages E[] over e_c / Z,
//   KL = E[e^d - 1 - d] + log(1 + G) - G,   s_c - p_c = e_c (e^d_c - 1 - G) / (Z (1 + G)),
//   G = E[e^d - 1].
// With D the average of student - teacher, G is as small as the result while that is small, and no
// term is negative in the first sum: float's relative precision is the result's. A large G is far
// above the result, which is about log(1 + G): there what is subtracted would leave nothing of it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/kl_divergence_implementations.h"
#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {
namespace {

// One row in double, by the definition: for the few that float is not enough for.
double far_row(const float* student, const float* teacher, std::int64_t classes, double inverse_tau,
               float* difference) {
  // Log probabilities are (logit - peak) / tau - log_sum.
  struct LogSoftmax {
    const float* logits;
    double inverse_tau, peak, log_sum = 0;
    LogSoftmax(const float* row, std::int64_t n, double factor)
        : logits(row), inverse_tau(factor), peak(*std::max_element(row, row + n)) {
      double sum = 0;
      for (std::int64_t c = 0; c < n; ++c) sum += std::exp((*this)[c]);
      log_sum = std::log(sum);
    }
    double operator[](std::int64_t c) const { return (logits[c] - peak) * inverse_tau - log_sum; }
  };
  const LogSoftmax log_s(student, classes, inverse_tau), log_p(teacher, classes, inverse_tau);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const double p = std::exp(log_p[c]);
    if (p != 0) sum += p * (log_p[c] - log_s[c]);  // 0 log 0 = 0
    if (difference) difference[c] = static_cast<float>(std::exp(log_s[c]) - p);
  }
  return sum;
}

// e^v = power (1 + rest + curve), |rest| <= ln 2 / 2, curve = e^rest - 1 - rest, power = 2^n.
struct Exponential {
  float n, power, rest, curve;
};
// Of v from kLeastExponent to 88.
constexpr float kLeastExponent = -87;
ZSQ_HOST_DEVICE Exponential exponential(float v) {
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  const float n = rintf(v * 0x1.715476p+0f);
  const float r = (v - n * kLn2High) - n * kLn2Low;
  float series = 1.0f / 40320;
  series = series * r + 1.0f / 5040;
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 1.0f / 2;
  const auto bits = std::bit_cast<std::int32_t>(n + 0x1.8p23f);
  return {n, std::bit_cast<float>((bits + 127) << 23), r, series * r * r};
}

constexpr std::int64_t kFloatTerms = 512;  // that are added up in float before double takes over

ZSQ_VECTORIZED float peak_of(const float* logits, std::int64_t classes) {
  float peak = logits[0];
#pragma omp simd reduction(max : peak)
  for (std::int64_t c = 0; c < classes; ++c) peak = logits[c] > peak ? logits[c] : peak;
  return peak;
}

// e_c into `weight`; {Z, sum of e_c (student - teacher)}.
struct Weights {
  double total = 0, gap = 0;
};
ZSQ_VECTORIZED Weights weigh(const float* __restrict student, const float* __restrict teacher,
                             float* __restrict weight, std::int64_t classes, float peak,
                             float inverse_tau) {
  Weights sums;
  for (std::int64_t begin = 0; begin < classes; begin += kFloatTerms) {
    const std::int64_t end = begin + kFloatTerms < classes ? begin + kFloatTerms : classes;
    float total = 0, gap = 0;
#pragma omp simd reduction(+ : total, gap)
    for (std::int64_t c = begin; c < end; ++c) {
      const float v = (teacher[c] - peak) * inverse_tau;
      const Exponential e = exponential(v < kLeastExponent ? kLeastExponent : v);
      weight[c] = e.power + e.power * (e.rest + e.curve);
      total += weight[c];
      gap += weight[c] * (student[c] - teacher[c]);
    }
    sums.total += total;
    sums.gap += gap;
  }
  return sums;
}

// e_c (e^d - 1) into `change`; the sums over it and over e_c (e^d - 1 - d). Not `near` where some d
// is too large for float, or no number.
struct Changes {
  double change = 0, curve = 0;
  bool near = true;
};
ZSQ_VECTORIZED Changes change(const float* __restrict student, const float* __restrict teacher,
                              const float* __restrict weight, float* __restrict changes,
                              std::int64_t classes, float shift, float inverse_tau) {
  constexpr float kMost = 20, kLn2 = 0x1.62e43p-1f;
  Changes sums;
  std::int32_t far = 0;
  for (std::int64_t begin = 0; begin < classes; begin += kFloatTerms) {
    const std::int64_t end = begin + kFloatTerms < classes ? begin + kFloatTerms : classes;
    float total = 0, curves = 0;
#pragma omp simd reduction(+ : total, curves) reduction(| : far)
    for (std::int64_t c = begin; c < end; ++c) {
      const float d = (student[c] - teacher[c] - shift) * inverse_tau;
      far |= !(fabsf(d) <= kMost);
      const Exponential e = exponential(d);
      const float curve =
          e.power * e.curve + ((e.power - 1) * (1 + e.rest) - e.n * kLn2);  // e^d - 1 - d
      changes[c] = weight[c] * (d + curve);
      total += changes[c];
      curves += weight[c] * curve;
    }
    sums.change += total;
    sums.curve += curves;
  }
  sums.near = far == 0;
  return sums;
}

ZSQ_VECTORIZED void subtract(const float* __restrict weight, const float* __restrict changes,
                             float* __restrict difference, std::int64_t classes, float growth,
                             float factor) {
  for (std::int64_t c = 0; c < classes; ++c)
    difference[c] = (changes[c] - weight[c] * growth) * factor;
}

constexpr double kMostGrowth = 1;  // G, up to where float loses no more than half a digit

// One row in float; not where student and teacher are too far apart. `scratch` has 2 `classes`.
bool near_row(const float* student, const float* teacher, std::int64_t classes, double inverse_tau,
              float* scratch, double* row_sum, float* difference) {
  float *weight = scratch, *changes = scratch + classes;
  const auto inverse = static_cast<float>(inverse_tau);
  const Weights w = weigh(student, teacher, weight, classes, peak_of(teacher, classes), inverse);
  const Changes sums = change(student, teacher, weight, changes, classes,
                              static_cast<float>(w.gap / w.total), inverse);
  if (!sums.near) return false;
  const double growth = sums.change / w.total;
  if (!(growth <= kMostGrowth)) return false;
  *row_sum = sums.curve / w.total + (std::log1p(growth) - growth);
  if (difference)
    subtract(weight, changes, difference, classes, static_cast<float>(growth),
             static_cast<float>(1 / (w.total * (1 + growth))));
  return true;
}

}  // namespace

void kl_rows_cpu(const float* student, const float* teacher, std::int64_t rows,
                 std::int64_t classes, double tau, double* row_sums, float* difference) {
  const std::int64_t grain = std::max<std::int64_t>(1, 1024 / classes);
  const double inverse_tau = 1 / tau;
  at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch(2 * static_cast<std::size_t>(classes));
    for (std::int64_t n = begin; n < end; ++n) {
      const float *s = student + n * classes, *p = teacher + n * classes;
      float* out = difference ? difference + n * classes : nullptr;
      if (!near_row(s, p, classes, inverse_tau, scratch.data(), row_sums + n, out))
        row_sums[n] = far_row(s, p, classes, inverse_tau, out);
    }
  });
}

}  // namespace zsq::cuda_kernels
