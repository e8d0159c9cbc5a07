// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

void kl_rows_cpu(const float* student, const float* teacher, std::int64_t rows,
                 std::int64_t classes, double tau, double* row_sums, float* difference) {
  const std::int64_t grain = std::max<std::int64_t>(1, 1024 / classes);
  const double inverse_tau = 1 / tau;
  at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
    Softmax s(classes), p(classes);
    for (std::int64_t n = begin; n < end; ++n) {
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
