// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.h"

#include <gtest/gtest.h>

#include "models/execute.h"
#include "tests/train/tiny.h"

namespace zsq::train {
namespace {

TEST(MeasureAgreement, ComparesOnImagesThatTrainingNeverDraws) {
  auto eight = four_bits();
  eight.weights.num_bits = eight.activations.num_bits = 8;
  Tiny tiny(1, eight);
  tiny.options.iterations = 0;
  Observer silent;
  run(tiny.job(), silent);
  const auto close =
      measure_agreement(tiny.teacher, tiny.student, held_out_images(tiny.generator, 100));
  EXPECT_EQ(close.images, 100);
  EXPECT_GT(close.agreement, 0.95);
  EXPECT_LT(close.kl, 1e-2);

  // A student that always answers the same class: agreement is that class's share.
  tiny.student.parameters.at("fc.bias").copy_(at::zeros({4})).select(0, 2).fill_(1e3);
  const auto draw = tiny.generator.draw(64, generator::Generator::kHeldOutSteps);
  const auto answers = models::execute(tiny.teacher.graph, tiny.teacher.parameters,
                                       tiny.generator.forward(draw).detach())
                           .argmax(1);
  const auto fixed =
      measure_agreement(tiny.teacher, tiny.student, held_out_images(tiny.generator, 64));
  EXPECT_NEAR(fixed.agreement, answers.eq(2).to(at::kDouble).mean().item<double>(), 1e-9);
  EXPECT_GT(fixed.kl, close.kl);
}

}  // namespace
}  // namespace zsq::train
