// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/kl_divergence_twins.h"

namespace zsq::cuda_kernels {
namespace {

// probability = softmax(logits / tau); log probability = (logit - peak) / tau - log_sum.
struct Softmax {
  std::vector<double> probability;
  float peak = 0;
  double log_sum = 0;
  double inverse_tau;

  Softmax(std::int64_t classes, double tau) : probability(classes), inverse_tau(1 / tau) {}
  double log_probability(float logit) const { return scaled(logit) - log_sum; }

  void assign(const float* logits) {
    const std::size_t classes = probability.size();
    peak = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += probability[c] = std::exp(scaled(logits[c]));
    for (double& p : probability) p /= sum;
    log_sum = std::log(sum);
  }

 private:
  double scaled(float logit) const {
    return (static_cast<double>(logit) - static_cast<double>(peak)) * inverse_tau;
  }
};

}  // namespace

void kl_rows_cpu(const float* student, const float* teacher, std::int64_t rows,
                 std::int64_t classes, double tau, double* row_sums, float* difference) {
  const std::int64_t grain = std::max<std::int64_t>(1, 1024 / classes);
  at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
    Softmax s(classes, tau), p(classes, tau);
    for (std::int64_t n = begin; n < end; ++n) {
      const float* student_row = student + n * classes;
      const float* teacher_row = teacher + n * classes;
      s.assign(student_row);
      p.assign(teacher_row);
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        const double gap = p.log_probability(teacher_row[c]) - s.log_probability(student_row[c]);
        if (p.probability[c] != 0) sum += p.probability[c] * gap;  // 0 log 0 = 0
        if (difference)
          difference[n * classes + c] = static_cast<float>(s.probability[c] - p.probability[c]);
      }
      row_sums[n] = sum;
    }
  });
}

}  // namespace zsq::cuda_kernels
