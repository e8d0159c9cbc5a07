// SPDX-License-Identifier: Apache-2.0
#include "train/features.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "losses/registry.h"
#include "models/blocks.h"
#include "models/execute.h"
#include "tests/train/tiny.h"
#include "train/images/image_bank.h"
#include "train/step.h"

namespace zsq::train {
namespace {

at::Tensor value_at(const models::Graph& graph, const models::ParameterStore& parameters,
                    const at::Tensor& images, const std::string& name) {
  const at::NoGradGuard no_grad;
  models::Taps taps{{graph.id_of(name)}, {}};
  models::execute(graph, parameters, images, &taps);
  return taps.values[0];
}

TEST(Features, AddTheirTermToTheStudentsLoss) {
  for (const auto term : {LossTerm::feature_mse, LossTerm::channel_attention}) {
    Tiny plain, with;
    with.options.loss_terms.push_back({term, 3});
    Step without_term(plain.teacher, plain.student, plain.generator, plain.options);
    Step with_term(with.teacher, with.student, with.generator, with.options);
    without_term.calibrate();
    with_term.calibrate();
    EXPECT_TRUE(without_term.feature_nodes().empty());
    const auto batch = with_term.generator_step(0, 1);
    // One resolution and no addition: the last map.
    ASSERT_EQ(batch.features.size(), 1U);
    EXPECT_FALSE(batch.features[0].requires_grad());
    const auto wanted =
        value_at(with.teacher.graph, with.teacher.parameters, batch.images, "conv2.relu");
    EXPECT_TRUE(batch.features[0].allclose(wanted, 1e-4, 1e-5));
    // As the next layer reads it.
    const auto got =
        value_at(with.student.graph, with.student.parameters, batch.images, "conv2.relu.quantizer");
    const double apart = losses::term(term)
                             .value({.student_features = {got}, .teacher_features = {wanted}})
                             .item<double>();
    EXPECT_GT(apart, 0);
    const double kl = without_term.student_step(batch, 1).loss.item<double>();
    EXPECT_NEAR(with_term.student_step(batch, 1).loss.item<double>(), kl + 3 * apart,
                1e-4 * (kl + 3 * apart));
  }
}

// The classes that the images were generated for reach the student's step.
TEST(Targets, AreThoseOfTheGenerator) {
  Tiny tiny;
  tiny.options.loss_terms = {{LossTerm::cross_entropy, 1}};
  Step step(tiny.teacher, tiny.student, tiny.generator, tiny.options);
  step.calibrate();
  const auto batch = step.generator_step(0, 1);
  EXPECT_TRUE(batch.targets.equal(step.draw(0).targets));
  const auto logits =
      models::execute(tiny.student.graph, tiny.student.parameters, batch.images).log_softmax(1);
  EXPECT_NEAR(step.student_step(batch, 1).loss.item<double>(),
              -batch.targets.mul(logits).sum(1).mean().item<double>(), 1e-4);
}

// The second pass has images at a distance of epsilon in each pixel, on which the student is
// further from its teacher; its term is the divergence there.
TEST(SecondPass, IsOnHarderImages) {
  Tiny plain, with;
  with.options.loss_terms.push_back({LossTerm::perturbed_kl_divergence, 2});
  with.options.perturbation = 0.05;
  Step first(plain.teacher, plain.student, plain.generator, plain.options);
  Step both(with.teacher, with.student, with.generator, with.options);
  first.calibrate();
  both.calibrate();
  const auto batch = both.generator_step(0, 1);
  const auto divergence = [&](const at::Tensor& images) {
    const auto teacher = models::execute(plain.teacher.graph, plain.teacher.parameters, images);
    const auto student = models::execute(plain.student.graph, plain.student.parameters, images);
    return losses::term(LossTerm::kl_divergence)
        .value({.student_logits = student,
                .teacher_logits = teacher,
                .temperature = plain.options.temperature,
                .logits_divisor = static_cast<double>(images.size(0))});
  };
  const auto images = batch.images.detach().requires_grad_(true);
  const auto gradient = torch::autograd::grad({divergence(images)}, {images})[0];
  const auto harder = batch.images.add(gradient.sign(), 0.05);
  const double before = divergence(batch.images).item<double>(),
               after = divergence(harder).item<double>();
  EXPECT_GT(std::abs(after - before), 0.01 * before);
  EXPECT_NEAR(first.student_step(batch, 1).loss.item<double>(), before, 1e-3 * before);
  EXPECT_NEAR(both.student_step(batch, 1).loss.item<double>(), before + 2 * after,
              1e-3 * (before + 2 * after));
}

TEST(Features, TrainingBringsTheMapsTogether) {
  const auto apart = [](double weight) {
    Tiny tiny;
    if (weight > 0) tiny.options.loss_terms.push_back({LossTerm::feature_mse, weight});
    tiny.options.iterations = 60;
    tiny.options.warmup = 0.1;
    Observer silent;
    run(tiny.job(), silent);
    const auto images =
        tiny.generator.forward(tiny.generator.draw(32, generator::Generator::kHeldOutSteps))
            .detach();
    return value_at(tiny.student.graph, tiny.student.parameters, images, "conv2.relu.quantizer")
        .sub(value_at(tiny.teacher.graph, tiny.teacher.parameters, images, "conv2.relu"))
        .square()
        .mean()
        .item<double>();
  };
  const double with = apart(100), without = apart(0);
  EXPECT_LT(with, 0.95 * without) << without;
}

// In a student that is not fused, and of one whose node went into a fused one.
TEST(SameInStudent, FindsTheValueOrItsQuantizer) {
  const Tiny tiny;
  const auto& teacher = tiny.teacher.graph;
  const std::vector<models::NodeId> nodes{teacher.id_of("conv2.relu"), teacher.id_of("pool")};
  const auto names = [&](const models::Graph& graph) {
    std::vector<std::string> result;
    for (const auto id : same_nodes(graph, teacher, nodes)) result.push_back(graph[id].name);
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(tiny.student.graph), (Names{"conv2.relu", "pool"}));
  EXPECT_EQ(names(quant::fuse_activations(tiny.student.graph)),
            (Names{"conv2.relu.quantizer", "pool"}));
}

}  // namespace
}  // namespace zsq::train
