// SPDX-License-Identifier: Apache-2.0
#include "losses/divergence.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "core/error.h"
#include "losses/losses.h"
#include "losses/one_output.h"

namespace zsq::losses {
namespace {

at::Tensor rows(const at::Tensor& outputs) {
  return outputs.dim() == 2 ? outputs : outputs.flatten(1);
}

bool one_label(OutputKind kind, const at::Tensor& outputs) {
  return kind == OutputKind::scores && outputs.size(1) == 1;
}

// Keeps the graph of the logits, so that a sum of such terms has a gradient.
at::Tensor nothing(const at::Tensor& logits) { return logits.sum().mul(0); }

// log sigmoid of the score of each image's label, [N, 1].
at::Tensor log_score(const at::Tensor& scores, const at::Tensor& labels) {
  if (scores.size(1) > 1) return at::log_sigmoid(scores.gather(1, labels.unsqueeze(1)));
  const auto side = labels.unsqueeze(1).mul(2).sub(1).to(scores.scalar_type());
  return at::log_sigmoid(scores.mul(side));
}

// The part of each output in the rows, by its place.
template <class Visit>
void for_each_output(const OutputRow& row, Visit visit) {
  std::int64_t begin = 0;
  for (const auto& output : row.outputs()) {
    visit(output, begin, output.length());
    begin += output.length();
  }
}

// The sum of `value` over the outputs.
template <class Value>
at::Tensor sum_over_outputs(const OutputRow& row, Value value) {
  at::Tensor sum;
  for_each_output(row, [&](const models::Output& output, std::int64_t begin, std::int64_t length) {
    const at::Tensor one = value(output, begin, length);
    sum = sum.defined() ? sum.add(one) : one;
  });
  return sum;
}

}  // namespace

bool has_decisions(OutputKind kind) {
  return kind == OutputKind::logits || kind == OutputKind::scores;
}

std::string_view name_of(const OutputRow& row) {
  const auto* one = row.outputs().size() == 1 ? &row.outputs()[0] : nullptr;
  switch (one ? one->kind : OutputKind(row)) {
    case OutputKind::scores:
      return one && one->has_places() ? "score_map" : "scores";
    case OutputKind::values:
      return "values";
    case OutputKind::map:
      return "map";
    case OutputKind::several:
      return "several";
    case OutputKind::logits:
      break;
  }
  return "logits";
}

at::Tensor divergence(const OutputRow& row, const at::Tensor& student, const at::Tensor& teacher,
                      double tau, double divisor) {
  if (row == OutputKind::logits) return divergence_of(row, student, teacher, tau, divisor);
  const auto s = rows(student), t = rows(teacher);
  if (row.outputs().empty()) return divergence_of(row, s, t, tau, divisor);
  return sum_over_outputs(row, [&](const auto& output, auto begin, auto length) {
    return divergence_of(output, s.narrow(1, begin, length), t.narrow(1, begin, length), tau,
                         divisor);
  });
}

at::Tensor agreement(const OutputRow& row, const at::Tensor& student, const at::Tensor& teacher) {
  const at::NoGradGuard no_grad;
  if (row == OutputKind::logits) return agreement_of(row, student, teacher);
  const auto s = rows(student), t = rows(teacher);
  if (row.outputs().empty()) return agreement_of(row, s, t);
  at::Tensor lowest;
  for_each_output(row, [&](const auto& output, auto begin, auto length) {
    const auto one = agreement_of(output, s.narrow(1, begin, length), t.narrow(1, begin, length));
    lowest = lowest.defined() ? at::minimum(lowest, one) : one;
  });
  return lowest;
}

std::vector<OutputMeasure> measures_of_outputs(const OutputRow& row, const at::Tensor& student,
                                               const at::Tensor& teacher) {
  const at::NoGradGuard no_grad;
  std::vector<OutputMeasure> measures;
  const auto s = rows(student), t = rows(teacher);
  for_each_output(row, [&](const auto& output, auto begin, auto length) {
    const auto of_s = s.narrow(1, begin, length), of_t = t.narrow(1, begin, length);
    measures.push_back({output.name, std::string(name_of(OutputRow({output}))), length,
                        divergence_of(output, of_s, of_t, /*tau=*/1, static_cast<double>(t.size(0)))
                            .template item<double>(),
                        agreement_of(output, of_s, of_t).template item<double>()});
  });
  return measures;
}

double most_frequent_share(const OutputRow& row, const at::Tensor& teacher) {
  const auto t = rows(teacher.detach());
  if (t.size(0) == 0) return 0;
  if (row.outputs().empty()) return most_frequent_share_of(row, t);
  double least = 1;
  for_each_output(row, [&](const auto& output, auto begin, auto length) {
    least = std::min(least, most_frequent_share_of(output, t.narrow(1, begin, length)));
  });
  return least;
}

at::Tensor cross_entropy(OutputKind kind, const at::Tensor& logits, const at::Tensor& targets) {
  if (kind == OutputKind::logits) return soft_cross_entropy(logits, targets);
  if (!has_decisions(kind) || one_label(kind, logits)) return nothing(logits);
  return targets.mul(at::log_sigmoid(logits)).sum(1).mean().neg();
}

at::Tensor easy_cross_entropy(OutputKind kind, const at::Tensor& student, const at::Tensor& teacher,
                              const at::Tensor& targets, double difficulty) {
  if (kind == OutputKind::logits) return easy_cross_entropy(student, teacher, targets, difficulty);
  if (!has_decisions(kind) || one_label(kind, student)) return nothing(student);
  const auto label = targets.argmax(1, /*keepdim=*/true);
  const auto easy = teacher.sigmoid().gather(1, label).ge(1 - difficulty);
  return at::log_sigmoid(student.gather(1, label)).mul(easy).mean().neg();
}

at::Tensor label_cross_entropy(OutputKind kind, const at::Tensor& logits, const at::Tensor& labels,
                               double focal_gamma) {
  if (kind == OutputKind::logits) return hard_sample_cross_entropy(logits, labels, focal_gamma);
  if (!has_decisions(kind)) return nothing(logits);
  return focal_mean(log_score(logits, labels), focal_gamma);
}

at::Tensor class_logits(OutputKind kind, const at::Tensor& outputs) {
  if (!has_decisions(kind))
    throw Error(ErrorCode::usage,
                "the network gives " +
                    std::string(kind == OutputKind::values ? "values" : "outputs with places") +
                    " and no classes, so labels of images cannot be compared with them; zsq "
                    "compare FLOAT STUDENT --data IMAGES compares the outputs of two networks, and "
                    "model.output=logits or scores says that values are classes or labels");
  if (!one_label(kind, outputs)) return outputs;
  return at::cat({at::zeros_like(outputs), outputs}, 1);
}

std::int64_t label_count(OutputKind kind, std::int64_t outputs) {
  if (kind == OutputKind::several) return 1;
  return kind == OutputKind::scores && outputs == 1 ? 2 : outputs;
}

at::Tensor predicted_labels(OutputKind kind, const at::Tensor& logits) {
  const auto row = rows(logits);
  if (kind == OutputKind::several) return at::zeros({row.size(0)}, row.options().dtype(at::kLong));
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
  if (kind == OutputKind::several) return at::zeros({logits.size(0), 1}, logits.options());
  return kind == OutputKind::scores ? logits.sigmoid() : at::zeros_like(logits);
}

at::Tensor drawn_log_likelihood(const OutputRow& row, const at::Tensor& outputs,
                                const at::Generator& draws) {
  if (row == OutputKind::logits) return drawn_log_likelihood_of(row, outputs, draws);
  const auto all = rows(outputs);
  if (row.outputs().empty()) return drawn_log_likelihood_of(row, all, draws);
  return sum_over_outputs(row, [&](const auto& output, auto begin, auto length) {
    return drawn_log_likelihood_of(output, all.narrow(1, begin, length), draws);
  });
}

}  // namespace zsq::losses
