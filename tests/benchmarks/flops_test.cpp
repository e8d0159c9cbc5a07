// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/flops.h"

#include <gtest/gtest.h>

#include "quant/student.h"
#include "tests/benchmarks/networks.h"
#include "tests/support/quantized.h"
#include "train/step.h"

namespace zsq::benchmarks {
namespace {

TEST(Flops, ATeacherPassesTheGradientToTheImageAndLearnsNothing) {
  const auto teacher = small_network();
  const auto flops = count_flops(teacher.graph, teacher.parameters, true);
  EXPECT_EQ(flops.forward, 2 * (kConv1 + kConv2 + kFc));
  EXPECT_EQ(flops.backward, 2 * (kConv1 + kConv2 + kFc));
  EXPECT_EQ(count_flops(teacher.graph, teacher.parameters, false).backward, 0);
}

TEST(Flops, AStudentLearnsEveryWeightAndWantsNoGradientOfTheImage) {
  const auto teacher = small_network();
  auto student = test::quantized(teacher, {});
  generator::Generator generator(teacher, {}, 1);
  const train::Step step(teacher, student, generator, {});  // decides what learns
  const auto flops = count_flops(student.graph, student.parameters, false);
  EXPECT_EQ(flops.forward, 2 * (kConv1 + kConv2 + kFc));
  EXPECT_EQ(flops.backward, 2 * (kConv1 + 2 * kConv2 + 2 * kFc));
}

TEST(Flops, BehindTheFirstLayerThatLearnsGradientsPass) {
  const auto teacher = small_network();
  teacher.parameters.at("bn1.bias").requires_grad_(true);
  const auto flops = count_flops(teacher.graph, teacher.parameters, false);
  EXPECT_EQ(flops.backward, 2 * (kConv2 + kFc));  // inputs only
}

TEST(Flops, OfTheGenerator) {
  const auto teacher = small_network();
  const auto flops = count_flops(generator::Generator(teacher, {}, 1), Precision::fp32);
  EXPECT_EQ(flops.forward, 2 * kGenerator);
  EXPECT_EQ(flops.backward, 4 * kGenerator);
  GeneratorOptions frozen;
  frozen.train_embeddings = false;
  EXPECT_EQ(count_flops(generator::Generator(teacher, frozen, 1), Precision::fp32).backward,
            4 * kGenerator - 2 * kGeneratorMap);
}

}  // namespace
}  // namespace zsq::benchmarks
