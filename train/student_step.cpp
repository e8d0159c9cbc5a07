// SPDX-License-Identifier: Apache-2.0
// The student's half of an iteration. A batch whose values would take much memory goes through the
// student in parts, whose gradients add up to those of the batch: the student's BatchNorm keeps its
// statistics, so that images do not depend on each other.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <torch/csrc/autograd/autograd.h>

#include "losses/divergence.h"
#include "train/parameters.h"
#include "train/step.h"
#include "train/step_gradients.h"

namespace zsq::train {
namespace {

Batch rows_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  if (count == batch.images.size(0)) return batch;
  Batch rows = batch;
  const auto cut = [&](at::Tensor& of_images) {
    if (of_images.defined()) of_images = of_images.narrow(0, first, count);
  };
  for (auto* of_images : {&rows.images, &rows.logits, &rows.targets}) cut(*of_images);
  for (auto& feature : rows.features) cut(feature);
  return rows;
}

}  // namespace

// Images that are harder for the student (arXiv 2303.13826, "sample difficulty promotion"):
//   x' = x + epsilon sign(dL(x) / dx),   L the sum of the terms that need no second pass.
void Step::add_second_pass(const at::Tensor& images, const models::ParameterStore& parameters,
                           losses::TermInputs& inputs) const {
  const auto first = losses::without(options_.loss_terms, &losses::Term::needs_second_pass);
  const auto gradient =
      torch::autograd::grad({losses::weighted_sum(first, inputs)}, {images}, {}, true)[0];
  const auto perturbed = images.detach().add(gradient.sign(), options_.perturbation);
  inputs.perturbed_student_logits =
      models::execute(student_graph_, parameters, perturbed, nullptr, options_.precision);
  const at::NoGradGuard no_grad;
  inputs.perturbed_teacher_logits = teacher_pass_(perturbed, nullptr, options_.precision).logits;
}

Step::Seen Step::look(const Batch& rows, const models::ParameterStore& parameters) const {
  const bool twice = losses::any_needs(options_.loss_terms, &losses::Term::needs_second_pass);
  const auto images = rows.images.detach().requires_grad_(twice);
  models::Taps taps{student_feature_nodes_, {}};
  const auto logits =
      models::execute(student_graph_, parameters, images, &taps, options_.precision);
  const auto divisor = options_.kl_reduction == KlReduction::mean ? logits.numel() : logits.size(0);
  const auto kind = teacher_.graph.signature.kind;
  losses::TermInputs inputs = {.kind = kind,
                               .student_logits = logits,
                               .teacher_logits = rows.logits,
                               .targets = rows.targets,
                               .student_features = std::move(taps.values),
                               .teacher_features = rows.features,
                               .classifier = classifier_,
                               .temperature = options_.temperature,
                               .logits_divisor = static_cast<double>(divisor),
                               .easy_difficulty = options_.easy_difficulty,
                               .reliable_entropy = options_.reliable_entropy,
                               .unreliable_weight = options_.unreliable_weight};
  if (twice) add_second_pass(images, parameters, inputs);
  return {losses::weighted_sum(options_.loss_terms, inputs),
          losses::agreement(kind, logits, rows.logits)};
}

Step::StudentPass Step::student_pass(const Batch& batch) const {
  const auto quantized = quant::with_quantized_weights(student_, weight_sites_);
  const std::vector<at::Tensor> no_scales;
  const auto& weights = weights_.weights();
  const auto& affine = affine_->parameters();
  const auto& scales = scales_ ? scales_->scales() : no_scales;
  auto parameters = weights;
  parameters.insert(parameters.end(), affine.begin(), affine.end());
  parameters.insert(parameters.end(), scales.begin(), scales.end());

  const auto n = batch.images.size(0), parts = (n + rows_at_once_ - 1) / rows_at_once_;
  StudentPass pass;
  std::vector<at::Tensor> gradients;
  const auto add = [](at::Tensor& sum, const at::Tensor& part) {
    sum = sum.defined() ? sum.add(part) : part;
  };
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto first = part * n / parts, count = (part + 1) * n / parts - first;
    auto [loss, agreement] = look(rows_of(batch, first, count), quantized);
    const parallel::Rows share{first, count, n};
    loss = part_of_mean(part_of_mean(loss, share), rows_);
    done(Part::student_forward);
    auto own = gradients_of(loss, parameters, /*keep=*/part + 1 < parts);
    // Not in place: what is added has one gradient for both.
    gradients = gradients.empty() ? std::move(own) : at::_foreach_add(gradients, own);
    add(pass.loss, loss.detach());
    add(pass.agreement, part_of_mean(part_of_mean(agreement, share), rows_));
    done(Part::student_backward);
  }
  gradients = of_all_ranks(std::move(gradients), {&pass.loss, &pass.agreement});
  pass.skipped = any_not_finite(gradients);
  const auto affine_begin = gradients.begin() + std::ssize(weights),
             scales_begin = affine_begin + std::ssize(affine);
  pass.weight_gradients = {gradients.begin(), affine_begin};
  pass.affine_gradients = {affine_begin, scales_begin};
  pass.scale_gradients = {scales_begin, gradients.end()};
  return pass;
}

StudentStep Step::student_step(const Batch& batch, double factor) {
  const auto pass = student_pass(batch);
  update_unless(pass.skipped, student_state(), [&] {
    weights_.step(pass.weight_gradients, factor);
    affine_->step(pass.affine_gradients, options_.affine_lr * factor);
    if (scales_) scales_->step(pass.scale_gradients, options_.scale_lr * factor);
  });
  done(Part::student_update);
  return {pass.loss, pass.agreement, pass.skipped};
}

}  // namespace zsq::train
