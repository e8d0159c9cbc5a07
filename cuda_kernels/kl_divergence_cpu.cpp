// SPDX-License-Identifier: Apache-2.0
// A row takes float where student and teacher are near enough for a form without cancellation, and
// double elsewhere. With the teacher's unnormalised probabilities e_c, Z their sum, any constant D,
// d_c = (student_c - teacher_c - D) / tau, and averages E[] over e_c / Z,
//   KL = E[e^d - 1 - d] + log(1 + G) - G,   s_c - p_c = e_c (e^d_c - 1 - G) / (Z (1 + G)),
//   G = E[e^d - 1].
// With D the average of student - teacher, G is as small as the result, and no term is negative in
// the first sum: float's relative precision is the result's.
#include <bit>
#include <cmath>
#include <vector>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/kl_divergence_twins.h"
#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {
namespace {

constexpr int kLanes = 8;  // independent sums, which is what lets a sum use vectors

// e^v for v <= 0 to 4 units in the last place, by operations that vectorise: v = n ln 2 + r with
// |r| <= ln 2 / 2, the Taylor series of e^r, and n into the exponent. 0 below the normal numbers;
// NaN stays NaN.
ZSQ_HOST_DEVICE double exp_of_negative(double v) {
  constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
  constexpr double kLeast = -708;
  const double bounded = v < kLeast ? kLeast : v;
  const double n = std::rint(bounded * 0x1.71547652b82fep+0);
  const double r = (bounded - n * kLn2High) - n * kLn2Low;
  double series = 1.0 / 6227020800;  // 1 / 13!, and so on; written out, or it does not vectorise
  series = series * r + 1.0 / 479001600;
  series = series * r + 1.0 / 39916800;
  series = series * r + 1.0 / 3628800;
  series = series * r + 1.0 / 362880;
  series = series * r + 1.0 / 40320;
  series = series * r + 1.0 / 5040;
  series = series * r + 1.0 / 720;
  series = series * r + 1.0 / 120;
  series = series * r + 1.0 / 24;
  series = series * r + 1.0 / 6;
  series = series * r + 1.0 / 2;
  series = series * r + 1.0;
  series = series * r + 1.0;
  // 2^n by its bits: adding 2^52 + 2^51 leaves n in the low bits of the sum.
  const auto bits = std::bit_cast<std::int64_t>(n + 0x1.8p52);
  const double power = std::bit_cast<double>((bits + 1023) << 52);
  return v < kLeast ? 0.0 : series * power;
}

// probability[c] = e^((logits[c] - peak) / tau), not yet divided by their sum, which is returned.
ZSQ_VECTORIZED double exponentials(const float* __restrict logits, double* __restrict probability,
                                   std::int64_t classes, double peak, double inverse_tau) {
  for (std::int64_t c = 0; c < classes; ++c)
    probability[c] = exp_of_negative((static_cast<double>(logits[c]) - peak) * inverse_tau);
  double lanes[kLanes] = {};
  const std::int64_t whole = classes / kLanes * kLanes;
  for (std::int64_t c = 0; c < whole; c += kLanes)
    for (int j = 0; j < kLanes; ++j) lanes[j] += probability[c + j];
  double sum = 0;
  for (std::int64_t c = whole; c < classes; ++c) sum += probability[c];
  for (const double lane : lanes) sum += lane;
  return sum;
}

// One row's softmax: probability / sum, and log probability = (logit - peak) / tau - log_sum.
struct Softmax {
  std::vector<double> probability;
  double peak = 0, sum = 1, log_sum = 0;

  explicit Softmax(std::int64_t classes) : probability(static_cast<std::size_t>(classes)) {}
  void assign(const float* logits, double inverse_tau) {
    const auto classes = std::ssize(probability);
    peak = *std::max_element(logits, logits + classes);
    sum = exponentials(logits, probability.data(), classes, peak, inverse_tau);
    log_sum = std::log(sum);
  }
};

struct Row {
  const float* logits;
  const double* probability;
  double peak, inverse_sum, log_sum;
};

ZSQ_VECTORIZED double divergence_of(Row s, Row p, std::int64_t classes, double inverse_tau,
                                    float* __restrict difference) {
  const float* __restrict student = s.logits, * __restrict teacher = p.logits;
  const double* __restrict s_share = s.probability, * __restrict p_share = p.probability;
  const auto term = [&](std::int64_t c) {
    const double log_p = (static_cast<double>(teacher[c]) - p.peak) * inverse_tau - p.log_sum;
    const double log_s = (static_cast<double>(student[c]) - s.peak) * inverse_tau - s.log_sum;
    const double probability = p_share[c] * p.inverse_sum;
    const double value = probability * (log_p - log_s);
    return probability == 0 ? 0.0 : value;  // 0 log 0 = 0
  };
  double lanes[kLanes] = {};
  const std::int64_t whole = classes / kLanes * kLanes;
  for (std::int64_t c = 0; c < whole; c += kLanes)
    for (int j = 0; j < kLanes; ++j) lanes[j] += term(c + j);
  double sum = 0;
  for (std::int64_t c = whole; c < classes; ++c) sum += term(c);
  for (const double lane : lanes) sum += lane;
  if (difference)
    for (std::int64_t c = 0; c < classes; ++c)
      difference[c] = static_cast<float>(s_share[c] * s.inverse_sum - p_share[c] * p.inverse_sum);
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
    Softmax s(classes), p(classes);
    std::vector<float> scratch(2 * static_cast<std::size_t>(classes));
    for (std::int64_t n = begin; n < end; ++n) {
      if (near_row(student + n * classes, teacher + n * classes, classes, inverse_tau,
                   scratch.data(), row_sums + n, difference ? difference + n * classes : nullptr))
        continue;
      const auto row = [&](Softmax& softmax, const float* logits) {
        softmax.assign(logits, inverse_tau);
        return Row{logits, softmax.probability.data(), softmax.peak, 1 / softmax.sum,
                   softmax.log_sum};
      };
      row_sums[n] =
          divergence_of(row(s, student + n * classes), row(p, teacher + n * classes), classes,
                        inverse_tau, difference ? difference + n * classes : nullptr);
    }
  });
}

}  // namespace zsq::cuda_kernels
