// SPDX-License-Identifier: Apache-2.0
// The trace of a loss's Hessian, which tells how sharp a minimum is (AIT 2203.17008, section 3.2),
// by Hutchinson's estimator with Rademacher vectors v and a central difference of gradients:
//   tr(H) = E[v' H v],   H v = (g(w + h v) - g(w - h v)) / (2 h)
#pragma once
#include <cstdint>
#include <functional>

#include "analysis/student_function.h"

namespace zsq::analysis {

using GradientFunction = std::function<Tensors(const Tensors& weights)>;

struct TraceEstimate {
  double trace = 0, standard_error = 0;  // of the mean over probes
  std::vector<double> layers;            // v_l' (H v)_l; they sum to the trace
};

// `h`: the length of a move in each weight.
TraceEstimate hessian_trace(const GradientFunction& gradient, const Tensors& weights, double h,
                            std::int64_t probes, std::uint64_t seed);

}  // namespace zsq::analysis
