// SPDX-License-Identifier: Apache-2.0
#include "losses/one_output.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "cuda_kernels/kl_divergence.h"

namespace zsq::losses {
namespace {

using models::Output, models::OutputKind;

// Below this share of their mean square, values are one value and rounding.
constexpr double kVaries = 1e-6;

// KL of each label's Bernoulli distribution, f64 [N, K]. Both logarithms come from the logits, so
// that a sigmoid that is 1 in f32 still has a distance from 1.
at::Tensor bernoulli_divergences(const at::Tensor& student, const at::Tensor& teacher) {
  const auto s = student.to(at::kDouble), t = teacher.detach().to(at::kDouble);
  const auto p = t.sigmoid();
  const auto on = at::log_sigmoid(t).sub(at::log_sigmoid(s));
  const auto off = at::log_sigmoid(t.neg()).sub(at::log_sigmoid(s.neg()));
  return p.mul(on).add(p.neg().add(1).mul(off));
}

bool varies(const at::Tensor& values) {
  if (values.size(0) < 2) return false;
  const double around = values.sub(values.mean(0, true)).square().sum().item<double>();
  return around > kVaries * values.square().sum().item<double>();
}

// What errors are relative to: values less their mean over the images, or themselves.
at::Tensor reference(const at::Tensor& values) {
  return varies(values) ? values.sub(values.mean(0, true)) : values;
}

double at_least_tiny(double value) { return std::max(value, 1e-30); }

at::Tensor relative_squared_error(const at::Tensor& student, const at::Tensor& teacher,
                                  double divisor) {
  const auto t = teacher.detach().to(at::kDouble);
  const double unit = at_least_tiny(reference(t).square().sum().item<double>());
  const double factor = static_cast<double>(t.size(0)) / unit / divisor;
  return student.to(at::kDouble).sub(t).square().sum().mul(factor);
}

at::Tensor agreement_of_labels(const at::Tensor& student, const at::Tensor& teacher) {
  const auto a = student.gt(0), b = teacher.gt(0);
  if (teacher.size(1) == 1) return a.eq(b).to(at::kDouble).mean();
  const auto both = a.logical_and(b).sum(1).to(at::kDouble);
  const auto sizes = a.sum(1).add(b.sum(1)).to(at::kDouble);
  const auto largest = student.argmax(1).eq(teacher.argmax(1)).to(at::kDouble);
  return at::where(sizes.eq(0), largest, both.mul(2).div(sizes.clamp_min(1))).mean();
}

at::Tensor cosines(const at::Tensor& a, const at::Tensor& b) {
  const auto lengths = a.square().sum(1).mul(b.square().sum(1)).sqrt().clamp_min(1e-30);
  return a.mul(b).sum(1).div(lengths).clamp_min(0).mean();
}

at::Tensor agreement_of_values(const at::Tensor& student, const at::Tensor& teacher) {
  const auto s = student.to(at::kDouble), t = teacher.to(at::kDouble);
  if (t.size(1) > 1) return cosines(s, t);
  const double unit = at_least_tiny(at::abs(reference(t)).sum().item<double>());
  return at::abs(s.sub(t)).sum().div(-unit).add(1).clamp_min(0);
}

// Of each image 1 - sum (p - q)^2 / sum (p^2 + q^2), p and q the probabilities: what is on in both
// outweighs the many places where nothing is.
at::Tensor overlap_of_scores(const at::Tensor& student, const at::Tensor& teacher) {
  const auto q = student.to(at::kDouble).sigmoid(), p = teacher.to(at::kDouble).sigmoid();
  const auto both = p.square().add(q.square()).sum(1).clamp_min(1e-30);
  return p.sub(q).square().sum(1).div(both).neg().add(1).mean();
}

// Rows of classes, [N * places, C].
at::Tensor places_of(const Output& output, const at::Tensor& row) {
  std::vector<std::int64_t> shape{row.size(0)};
  shape.insert(shape.end(), output.shape.begin(), output.shape.end());
  const auto last = row.reshape(shape).movedim(output.axis, -1);
  return last.reshape({-1, last.size(-1)});
}

double places(const Output& output) {
  if (output.kind == OutputKind::map)
    return static_cast<double>(output.length()) /
           static_cast<double>(output.shape.at(static_cast<std::size_t>(output.axis - 1)));
  return output.kind == OutputKind::scores && output.has_places()
             ? static_cast<double>(output.length())
             : 1;
}

}  // namespace

at::Tensor divergence_of(OutputKind kind, const at::Tensor& student, const at::Tensor& teacher,
                         double tau, double divisor) {
  if (kind == OutputKind::logits || kind == OutputKind::map)
    return cuda_kernels::kl_divergence(student, teacher, tau, divisor);
  const auto value =
      kind == OutputKind::scores
          ? bernoulli_divergences(student.div(tau), teacher.div(tau)).sum().mul(tau * tau / divisor)
          : relative_squared_error(student, teacher, divisor);
  return value.to(at::kFloat);
}

at::Tensor agreement_of(OutputKind kind, const at::Tensor& student, const at::Tensor& teacher) {
  if (kind == OutputKind::logits || kind == OutputKind::map)
    return student.argmax(1).eq(teacher.argmax(1)).to(at::kDouble).mean();
  return kind == OutputKind::scores ? agreement_of_labels(student, teacher)
                                    : agreement_of_values(student, teacher);
}

double most_frequent_share_of(OutputKind kind, const at::Tensor& teacher) {
  if (kind == OutputKind::values) return varies(teacher.to(at::kDouble)) ? 0 : 1;
  const bool one_label = kind == OutputKind::scores && teacher.size(1) == 1;
  const auto decisions = one_label ? teacher.select(1, 0).gt(0).to(at::kLong) : teacher.argmax(1);
  const auto counts = at::bincount(decisions.cpu());
  return counts.max().item<double>() / static_cast<double>(teacher.size(0));
}

at::Tensor drawn_log_likelihood_of(OutputKind kind, const at::Tensor& outputs,
                                   const at::Generator& draws) {
  if (kind == OutputKind::logits || kind == OutputKind::map) {
    const auto log_p = at::log_softmax(outputs, 1);
    const auto drawn = at::multinomial(log_p.detach().exp().cpu(), 1, false, draws);
    return log_p.gather(1, drawn.to(log_p.device())).sum();
  }
  if (kind == OutputKind::scores) {
    const auto side = at::bernoulli(outputs.detach().sigmoid().cpu(), draws).mul(2).sub(1);
    return at::log_sigmoid(outputs.mul(side.to(outputs.device()))).sum();
  }
  const auto t = outputs.detach().to(at::kDouble);
  const double variance =
      at_least_tiny(reference(t).square().sum().item<double>() / static_cast<double>(t.size(0)));
  const auto noise = at::randn(outputs.sizes(), draws, at::kFloat).to(outputs.device());
  return outputs.mul(noise).sum().mul(std::sqrt(2 / variance));
}

at::Tensor divergence_of(const Output& output, const at::Tensor& student, const at::Tensor& teacher,
                         double tau, double divisor) {
  divisor *= places(output);
  if (output.kind != OutputKind::map)
    return divergence_of(output.kind, student, teacher, tau, divisor);
  return divergence_of(output.kind, places_of(output, student), places_of(output, teacher), tau,
                       divisor);
}

at::Tensor agreement_of(const Output& output, const at::Tensor& student,
                        const at::Tensor& teacher) {
  if (output.kind == OutputKind::map)
    return agreement_of(output.kind, places_of(output, student), places_of(output, teacher));
  if (!output.has_places()) return agreement_of(output.kind, student, teacher);
  if (output.kind == OutputKind::scores) return overlap_of_scores(student, teacher);
  // Constants of the places, as an anchor's coordinates, are alike in any two networks.
  const auto t = teacher.to(at::kDouble);
  const auto off = varies(t) ? t.mean(0, true) : t.mean(1, true);
  return cosines(student.to(at::kDouble).sub(off), t.sub(off));
}

double most_frequent_share_of(const Output& output, const at::Tensor& teacher) {
  if (output.kind == OutputKind::map)
    return most_frequent_share_of(output.kind, places_of(output, teacher));
  return most_frequent_share_of(output.has_places() ? OutputKind::values : output.kind, teacher);
}

at::Tensor drawn_log_likelihood_of(const Output& output, const at::Tensor& outputs,
                                   const at::Generator& draws) {
  const auto& rows = output.kind == OutputKind::map ? places_of(output, outputs) : outputs;
  return drawn_log_likelihood_of(output.kind, rows, draws).div(std::sqrt(places(output)));
}

}  // namespace zsq::losses
