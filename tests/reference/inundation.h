// SPDX-License-Identifier: Apache-2.0
// Plain truth of cuda_kernels/inundation.h: the Nesterov step in ATen, and ratios found in double
// by trying out what a weight's code becomes.
#pragma once
#include <cmath>
#include <vector>

#include "tests/reference/fake_quant.h"

namespace zsq::reference {

struct NesterovStep {
  at::Tensor velocity, step;
};

inline NesterovStep nesterov_step(const at::Tensor& velocity, const at::Tensor& gradient, double lr,
                                  double momentum) {
  const at::Tensor v = velocity * momentum + gradient;
  return {v, (v * momentum + gradient) * lr};
}

inline double code_in_double(double w, double scale, double zero_point, double qmin, double qmax) {
  return std::clamp(std::nearbyint(w / scale) + zero_point, qmin, qmax);
}

// The smallest k at which w - k * step has another code, by doubling and bisection; infinite where
// none does.
inline double ratio_by_trial(double w, double step, double scale, double zero_point, double qmin,
                             double qmax) {
  const double before = code_in_double(w, scale, zero_point, qmin, qmax);
  const auto crosses = [&](double k) {
    return code_in_double(w - k * step, scale, zero_point, qmin, qmax) != before;
  };
  double high = 1e-20;
  while (!crosses(high)) {
    high *= 2;
    if (high > 1e30) return std::numeric_limits<double>::infinity();
  }
  double low = 0;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (crosses(middle) ? high : low) = middle;
  }
  return high;
}

// The ratios of all weights in memory order of a row-major tensor [C, ...].
inline std::vector<double> ratios_by_trial(const at::Tensor& weight, const at::Tensor& step,
                                           const at::Tensor& scale, const at::Tensor& zero_point,
                                           std::int64_t qmin, std::int64_t qmax) {
  const at::Tensor w = weight.contiguous().cpu(), d = step.contiguous().cpu();
  const at::Tensor scales = scale.cpu(), zero_points = zero_point.cpu();
  const std::int64_t row = w.numel() / w.size(0);
  std::vector<double> ratios(w.numel());
  for (std::int64_t i = 0; i < w.numel(); ++i) {
    const std::int64_t c = scale.numel() == 1 ? 0 : i / row;
    ratios[i] =
        ratio_by_trial(w.const_data_ptr<float>()[i], d.const_data_ptr<float>()[i],
                       scales.const_data_ptr<float>()[c], zero_points.const_data_ptr<float>()[c],
                       static_cast<double>(qmin), static_cast<double>(qmax));
  }
  return ratios;
}

}  // namespace zsq::reference
