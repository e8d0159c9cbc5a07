// SPDX-License-Identifier: Apache-2.0
// Whether cross-entropy and KL divergence pull a student the same way (AIT 2203.17008,
// section 3.1):
//   cos = <g_CE, g_KL> / (|g_CE| |g_KL|)   over the weights of a layer, and of all layers together.
#pragma once
#include "analysis/student_function.h"

namespace zsq::analysis {

struct GradientCosine {
  double all = 0;
  std::vector<double> layers;  // as StudentFunction::layers()
};

GradientCosine gradient_cosine(const StudentFunction& student, const Sample& sample, double tau);

// 0 where one of them is 0.
double cosine(const at::Tensor& a, const at::Tensor& b);

}  // namespace zsq::analysis
