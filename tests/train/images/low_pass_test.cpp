// SPDX-License-Identifier: Apache-2.0
#include "train/images/low_pass.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "generator/augment.h"
#include "models/execute.h"
#include "tests/support/seed_each_test.h"
#include "tests/train/tiny.h"

namespace zsq::train {
namespace {

using generator::low_pass;

// A wave of u periods along the rows and v along the columns is an eigenvector.
TEST(LowPass, DampsAWaveByItsFrequency) {
  const auto y = at::arange(12).view({12, 1}), x = at::arange(10);
  for (const auto& [u, v] : {std::pair{0, 0}, {1, 0}, {0, 3}, {2, 4}, {5, 1}}) {
    const auto wave = y.mul(2 * std::numbers::pi * u / 12)
                          .add(x.mul(2 * std::numbers::pi * v / 10))
                          .cos()
                          .to(at::kFloat)
                          .view({1, 1, 12, 10});
    const double gain = std::exp(-(u * u + v * v) / (2 * 3.0 * 3.0));
    EXPECT_TRUE(low_pass(wave, 3).allclose(wave.mul(gain), 1e-4, 1e-5)) << u << " " << v;
  }
}

TEST(LowPass, KeepsShapeMemoryOrderAndMean) {
  const auto images = at::randn({2, 3, 8, 6}).contiguous(at::MemoryFormat::ChannelsLast);
  const auto filtered = low_pass(images, 1);
  EXPECT_EQ(filtered.sizes(), images.sizes());
  EXPECT_TRUE(filtered.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(filtered.mean({2, 3}).allclose(images.mean({2, 3}), 1e-4, 1e-5));
  EXPECT_TRUE(low_pass(images, 1e4).allclose(images, 1e-4, 1e-5));
}

TEST(LowPass, TheTeacherAnswersToTheFilteredImages) {
  Tiny tiny;
  tiny.options.loss_terms.push_back({LossTerm::feature_mse, 1});
  Step step(tiny.teacher, tiny.student, tiny.generator, tiny.options);
  step.calibrate();
  const auto before = step.generator_step(0, 1);
  const auto after =
      low_pass(before, 2, tiny.teacher, step.feature_nodes(), tiny.options.precision);
  EXPECT_TRUE(after.images.equal(low_pass(before.images, 2)));
  models::Taps taps{step.feature_nodes(), {}};
  const auto logits =
      models::execute(tiny.teacher.graph, tiny.teacher.parameters, after.images, &taps);
  EXPECT_TRUE(after.logits.allclose(logits));
  EXPECT_FALSE(after.logits.allclose(before.logits));
  EXPECT_TRUE(after.features[0].allclose(taps.values[0]));
}

// Another result than without, and one that learns.
TEST(LowPass, IsWhatTheStudentLearnsFrom) {
  const auto weight_after = [](double cutoff) {
    Tiny tiny;
    tiny.options.low_pass_cutoff = cutoff;
    Observer silent;
    run(tiny.job(), silent);
    return tiny.student.parameters.at("conv2.weight").detach().clone();
  };
  EXPECT_FALSE(weight_after(2).equal(weight_after(0)));
}

}  // namespace
}  // namespace zsq::train
