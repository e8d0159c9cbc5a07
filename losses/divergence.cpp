// SPDX-License-Identifier: Apache-2.0
#include "losses/divergence.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "cuda_kernels/kl_divergence.h"
#include "losses/losses.h"

namespace zsq::losses {
namespace {

// Below this share of their mean square, values are one value and rounding.
constexpr double kVaries = 1e-6;

at::Tensor rows(const at::Tensor& outputs) {
  return outputs.dim() == 2 ? outputs : outputs.flatten(1);
}

bool one_label(OutputKind kind, const at::Tensor& outputs) {
  return kind == OutputKind::scores && outputs.size(1) == 1;
}

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

at::Tensor agreement_of_values(const at::Tensor& student, const at::Tensor& teacher) {
  const auto s = student.to(at::kDouble), t = teacher.to(at::kDouble);
  if (t.size(1) == 1) {
    const double unit = at_least_tiny(at::abs(reference(t)).sum().item<double>());
    return at::abs(s.sub(t)).sum().div(-unit).add(1).clamp_min(0);
  }
  const auto lengths = s.square().sum(1).mul(t.square().sum(1)).sqrt().clamp_min(1e-30);
  return s.mul(t).sum(1).div(lengths).clamp_min(0).mean();
}

// Keeps the graph of the logits, so that a sum of such terms has a gradient.
at::Tensor nothing(const at::Tensor& logits) { return logits.sum().mul(0); }

// log sigmoid of the score of each image's label, [N, 1].
at::Tensor log_score(const at::Tensor& scores, const at::Tensor& labels) {
  if (scores.size(1) > 1) return at::log_sigmoid(scores.gather(1, labels.unsqueeze(1)));
  const auto side = labels.unsqueeze(1).mul(2).sub(1).to(scores.scalar_type());
  return at::log_sigmoid(scores.mul(side));
}

}  // namespace

std::string_view name_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::scores:
      return "scores";
    case OutputKind::values:
      return "values";
    case OutputKind::logits:
      break;
  }
  return "logits";
}

at::Tensor divergence(OutputKind kind, const at::Tensor& student, const at::Tensor& teacher,
                      double tau, double divisor) {
  if (kind == OutputKind::logits)
    return cuda_kernels::kl_divergence(student, teacher, tau, divisor);
  const auto s = rows(student), t = rows(teacher);
  const auto value =
      kind == OutputKind::scores
          ? bernoulli_divergences(s.div(tau), t.div(tau)).sum().mul(tau * tau / divisor)
          : relative_squared_error(s, t, divisor);
  return value.to(at::kFloat);
}

at::Tensor agreement(OutputKind kind, const at::Tensor& student, const at::Tensor& teacher) {
  if (kind == OutputKind::logits)
    return student.argmax(1).eq(teacher.argmax(1)).to(at::kDouble).mean();
  const auto s = rows(student.detach()), t = rows(teacher.detach());
  return kind == OutputKind::scores ? agreement_of_labels(s, t) : agreement_of_values(s, t);
}

double most_frequent_share(OutputKind kind, const at::Tensor& teacher) {
  const auto t = rows(teacher.detach());
  if (t.size(0) == 0) return 0;
  if (kind == OutputKind::values) return varies(t.to(at::kDouble)) ? 0 : 1;
  const auto counts = at::bincount(predicted_labels(kind, t).cpu());
  return counts.max().item<double>() / static_cast<double>(t.size(0));
}

at::Tensor cross_entropy(OutputKind kind, const at::Tensor& logits, const at::Tensor& targets) {
  if (kind == OutputKind::logits) return soft_cross_entropy(logits, targets);
  if (kind == OutputKind::values || one_label(kind, logits)) return nothing(logits);
  return targets.mul(at::log_sigmoid(logits)).sum(1).mean().neg();
}

at::Tensor easy_cross_entropy(OutputKind kind, const at::Tensor& student, const at::Tensor& teacher,
                              const at::Tensor& targets, double difficulty) {
  if (kind == OutputKind::logits) return easy_cross_entropy(student, teacher, targets, difficulty);
  if (kind == OutputKind::values || one_label(kind, student)) return nothing(student);
  const auto label = targets.argmax(1, /*keepdim=*/true);
  const auto easy = teacher.sigmoid().gather(1, label).ge(1 - difficulty);
  return at::log_sigmoid(student.gather(1, label)).mul(easy).mean().neg();
}

at::Tensor label_cross_entropy(OutputKind kind, const at::Tensor& logits, const at::Tensor& labels,
                               double focal_gamma) {
  if (kind == OutputKind::logits) return hard_sample_cross_entropy(logits, labels, focal_gamma);
  if (kind == OutputKind::values) return nothing(logits);
  return focal_mean(log_score(logits, labels), focal_gamma);
}

at::Tensor class_logits(OutputKind kind, const at::Tensor& outputs) {
  if (kind == OutputKind::values)
    throw Error(ErrorCode::usage,
                "the network gives values and no classes, so labels of images cannot be compared "
                "with them; zsq compare FLOAT STUDENT --data IMAGES compares the values of two "
                "networks, and model.output=logits or scores says that they are classes or labels");
  if (!one_label(kind, outputs)) return outputs;
  return at::cat({at::zeros_like(outputs), outputs}, 1);
}

std::int64_t label_count(OutputKind kind, std::int64_t outputs) {
  return kind == OutputKind::scores && outputs == 1 ? 2 : outputs;
}

at::Tensor predicted_labels(OutputKind kind, const at::Tensor& logits) {
  const auto row = rows(logits);
  return one_label(kind, row) ? row.select(1, 0).gt(0).to(at::kLong) : row.argmax(1);
}

at::Tensor sees_label(OutputKind kind, const at::Tensor& logits, const at::Tensor& labels) {
  const auto row = rows(logits);
  if (kind != OutputKind::scores || one_label(kind, row))
    return predicted_labels(kind, row).eq(labels);
  return row.gather(1, labels.unsqueeze(1)).select(1, 0).gt(0);
}

at::Tensor soft_targets(OutputKind kind, const at::Tensor& logits) {
  if (kind == OutputKind::logits) return logits.softmax(1);
  return kind == OutputKind::scores ? logits.sigmoid() : at::zeros_like(logits);
}

at::Tensor drawn_log_likelihood(OutputKind kind, const at::Tensor& outputs,
                                const at::Generator& draws) {
  if (kind == OutputKind::logits) {
    const auto log_p = at::log_softmax(outputs, 1);
    const auto drawn = at::multinomial(log_p.detach().exp().cpu(), 1, false, draws);
    return log_p.gather(1, drawn.to(log_p.device())).sum();
  }
  const auto row = rows(outputs);
  if (kind == OutputKind::scores) {
    const auto side = at::bernoulli(row.detach().sigmoid().cpu(), draws).mul(2).sub(1);
    return at::log_sigmoid(row.mul(side.to(row.device()))).sum();
  }
  const auto t = row.detach().to(at::kDouble);
  const double variance =
      at_least_tiny(reference(t).square().sum().item<double>() / static_cast<double>(t.size(0)));
  const auto noise = at::randn(row.sizes(), draws, at::kFloat).to(row.device());
  return row.mul(noise).sum().mul(std::sqrt(2 / variance));
}

}  // namespace zsq::losses
