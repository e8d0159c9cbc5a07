// SPDX-License-Identifier: Apache-2.0
#include "analysis/gradient_cosine.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <cmath>

namespace zsq::analysis {

double cosine(const at::Tensor& a, const at::Tensor& b) {
  const auto x = a.to(at::kDouble).flatten(), y = b.to(at::kDouble).flatten();
  const double norms = std::sqrt(x.dot(x).item<double>()) * std::sqrt(y.dot(y).item<double>());
  return norms > 0 ? x.dot(y).item<double>() / norms : 0;
}

GradientCosine gradient_cosine(const StudentFunction& student, const Sample& sample, double tau) {
  const Tensors weights = student.weights();
  const Tensors labels = student.gradient(Objective::cross_entropy, sample, tau, weights);
  const Tensors teacher = student.gradient(Objective::kl_divergence, sample, tau, weights);
  GradientCosine result;
  Tensors all_labels, all_teacher;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    result.layers.push_back(cosine(labels[i], teacher[i]));
    all_labels.push_back(labels[i].flatten());
    all_teacher.push_back(teacher[i].flatten());
  }
  result.all = cosine(at::cat(all_labels), at::cat(all_teacher));
  return result;
}

}  // namespace zsq::analysis
