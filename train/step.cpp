// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "losses/divergence.h"
#include "models/blocks.h"
#include "models/classifier.h"
#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "train/features.h"
#include "train/images/image_bank.h"
#include "train/images/system_noise.h"
#include "train/parameters.h"
#include "train/rank_batch.h"
#include "train/statistics_loss.h"
#include "train/step_gradients.h"

namespace zsq::train {
namespace {

// Rows that a student step takes at once: of a large network on a CPU, as many as have room for the
// values that a backward pass needs, about what is counted here. The error of values is one by
// their variance over the whole batch, so that they stay together.
std::int64_t rows_of_one_pass(const models::Model& teacher, const TrainOptions& options) {
  constexpr double kBytesAtOnce = 700e6;
  const bool twice = losses::any_needs(options.loss_terms, &losses::Term::needs_second_pass);
  if (!teacher.parameters.device().is_cpu() || twice ||
      !losses::has_decisions(teacher.graph.signature.kind))
    return options.batch_size;
  double bytes = 1;
  for (const auto& shape : models::infer_shapes(teacher.graph, teacher.parameters))
    bytes += std::accumulate(shape.begin(), shape.end(), 4.0, std::multiplies<>());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kBytesAtOnce / bytes));
}

std::unique_ptr<StepRule> affine_rule(const quant::Student& student, const TrainOptions& options) {
  const auto parameters = affine_parameters(student);
  if (options.optimizer == Optimizer::adam)
    return std::make_unique<UnitAdam>(parameters, affine_units(student));
  return std::make_unique<Nesterov>(parameters, options.momentum);
}

}  // namespace

// The gradients of all ranks added up, and with them `numbers` ([] each), in one collective.
std::vector<at::Tensor> Step::of_all_ranks(std::vector<at::Tensor> gradients,
                                           std::vector<at::Tensor*> numbers) const {
  if (rows_.whole()) return gradients;
  for (const auto* number : numbers) gradients.push_back(number->to(at::kFloat));
  gradients = parallel::summed(ranks_, std::move(gradients));
  for (; !numbers.empty(); numbers.pop_back(), gradients.pop_back())
    *numbers.back() = gradients.back();
  return gradients;
}

// The method, arXiv 2111.02625 and 2203.17008: images from superposed class embeddings; the
// generator learns to please the teacher and its BatchNorm statistics; the student follows the
// teacher's softened predictions, its weights by gradient inundation, gamma, beta and biases by
// plain steps.

Step::GeneratorPass Step::generator_pass(const generator::LatentBatch& draw) const {
  auto images = generator_.forward(draw, options_.precision, part_of(ranks_, rows_));
  if (row_major_) images = images.contiguous();
  done(Part::generator_forward);
  // The gradient of the images ends the teacher's share of the one backward pass.
  if (part_done_)
    images.register_hook([this](const at::TensorBase&) { done(Part::teacher_backward); });
  models::Taps taps{teacher_feature_nodes_, {}};
  const auto [logits, moments] = teacher_pass_(images, &taps, options_.precision);
  for (auto& feature : taps.values) feature = feature.detach();
  const auto statistics = statistics_loss(generator_.options().statistics,
                                          moments_of_batch(ranks_, rows_, moments), running_);
  const auto of_labels = part_of_mean(
      losses::cross_entropy(teacher_.graph.signature.kind, logits, draw.targets), rows_);
  const double weight = generator_.options().bns_weight;
  const auto loss = of_labels.add(statistics, weight);
  done(Part::teacher_forward);
  auto cross_entropy = of_labels.detach();
  auto gradients = of_all_ranks(gradients_of(loss, adam_.parameters()), {&cross_entropy});
  done(Part::generator_backward);
  const bool targets = losses::any_needs(options_.loss_terms, &losses::Term::needs_targets);
  const auto of_batch =
      rows_.whole() ? loss.detach() : cross_entropy.add(statistics.detach(), weight);
  return {{images.detach(), logits.detach(), of_batch, any_not_finite(gradients),
           std::move(taps.values), targets ? draw.targets : at::Tensor(), statistics.detach()},
          std::move(gradients)};
}

Batch Step::generator_step(const generator::LatentBatch& draw, double factor) {
  auto [batch, gradients] = generator_pass(draw);
  adam_.step(gradients, generator_.options().lr * factor, batch.skipped);
  done(Part::generator_update);
  return batch;
}

Step::Step(const models::Model& teacher, quant::Student& student, generator::Generator& generator,
           const TrainOptions& options, parallel::Communicator& ranks)
    : products_(options.precision),
      teacher_(teacher),
      student_(student),
      generator_(generator),
      options_(options),
      ranks_(ranks),
      rows_(parallel::rows_of(ranks, options.batch_size)),
      student_graph_(quant::take_quantized_weights(quant::fuse_activations(student.graph))),
      weight_sites_(quant::weight_sites(student)),
      teacher_pass_(teacher.graph, teacher.parameters),
      running_(running_moments(teacher)),
      adam_(trainable(generator.parameters()), generator.options().beta1,
            generator.options().beta2),
      affine_(affine_rule(student, options)),
      weights_(student, options),
      rows_at_once_(rows_of_one_pass(teacher, options)) {
  if (losses::any_needs(options.loss_terms, &losses::Term::needs_features)) {
    feature_nodes_ = models::feature_nodes(teacher.graph, teacher.parameters);
    teacher_feature_nodes_ = same_nodes(teacher_pass_.graph(), teacher.graph, feature_nodes_);
    student_feature_nodes_ = same_nodes(student_graph_, teacher.graph, feature_nodes_);
  }
  if (losses::any_needs(options.loss_terms, &losses::Term::needs_classifier))
    classifier_ = models::classifier_weight(teacher);
  for (const auto& weight : weights_.weights()) weight.requires_grad_(true);
  for (const auto& parameter : affine_->parameters()) parameter.requires_grad_(true);
}

Step::~Step() {
  for (const auto& weight : weights_.weights()) weight.requires_grad_(false);
  for (const auto& parameter : affine_->parameters()) parameter.requires_grad_(false);
}

std::pair<double, double> Step::rehearse(const std::function<Batch()>& make_batch) {
  const auto clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  NamedTensors before;
  for (const auto& [name, tensor] : state()) before.emplace_back(name, tensor.detach().clone());
  std::pair<double, double> seconds;
  for (int round = 0; round < 2; ++round) {  // the first pays for setting up memory and kernels
    const double begin = clock();
    const auto batch = make_batch();
    batch.logits.sum().item<float>();  // a GPU is waited for
    const double middle = clock();
    student_step(batch, 1).skipped.item<bool>();
    seconds = {middle - begin, clock() - middle};
  }
  copy_state(state(), before);
  return seconds;
}

void Step::use(const ConvolutionSettings& settings) {
  row_major_ = !settings.channels_last;
  benchmark_.reset();  // puts back what the next one is to find
  benchmark_.emplace(settings.benchmark);
}

void Step::calibrate(const BankDraws* bank, const SystemNoise* noise) {
  const at::NoGradGuard no_grad;
  auto step = generator::Generator::kCalibrationSteps;
  quant::calibrate(student_, [&, n = options_.batch_size] {
    const auto now = step++;
    const bool whole = bank && bank->whole();
    auto images = whole ? bank->images(student_.graph, student_.parameters.device(), now, {0, n, n})
                        : generator_.forward(generator_.draw(n, now));
    if (bank && !whole) images = bank->mixed(images, now);
    return noise ? (*noise)(images, now) : images;
  });
  learnable_scales();
}

void Step::learnable_scales() {
  if (options_.learnable_scales != LearnableScales::none)
    scales_.emplace(student_, options_.learnable_scales);
}

// What a student step changes.
std::vector<at::Tensor> Step::student_state() const {
  auto tensors = weights_.weights();
  const auto append = [&](const std::vector<at::Tensor>& more) {
    tensors.insert(tensors.end(), more.begin(), more.end());
  };
  append(affine_->parameters());
  append(tensors_of(weights_.state()));
  append(tensors_of(affine_->state()));
  if (scales_) {
    append(scales_->scales());
    append(tensors_of(scales_->state()));
  }
  return tensors;
}

void Step::restart_student() {
  const at::NoGradGuard no_grad;
  affine_->stop();
  weights_.stop();
  learnable_scales();
}

NamedTensors Step::state() const {
  NamedTensors state;
  const auto append = [&](const std::string& prefix, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) state.emplace_back(prefix + name, tensor);
  };
  for (const auto& name : student_.parameters.names()) {
    state.emplace_back("student/" + name, student_.parameters.at(name));
  }
  append("generator/", generator_.parameters());
  append("adam/", adam_.state());
  append("affine/", affine_->state());
  append("weights/", weights_.state());
  if (scales_) append("scales/", scales_->state());
  return state;
}

void Step::load(const NamedTensors& saved, bool calibrated) {
  restore_ranges(student_, saved);
  if (calibrated) learnable_scales();
  copy_state(state(), saved);
}

}  // namespace zsq::train
