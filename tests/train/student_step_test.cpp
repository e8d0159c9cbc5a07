// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/train/tiny.h"
#include "train/step.h"

namespace zsq::train::student_step_test {
namespace {

struct Result {
  StudentStep numbers;
  std::map<std::string, at::Tensor> parameters;
};

// One step on a batch of 8; `rows` at once, or as the step has it.
Result step_in_parts(std::int64_t rows, LossTerm term = LossTerm::kl_divergence) {
  Tiny tiny;
  tiny.options.loss_terms = {{LossTerm::kl_divergence, 1}};
  if (term != LossTerm::kl_divergence) tiny.options.loss_terms.push_back({term, 1});
  tiny.options.learnable_scales = LearnableScales::all;
  Step step(tiny.teacher, tiny.student, tiny.generator, tiny.options);
  step.calibrate();
  if (rows > 0) step.take_at_once(rows);
  Result result{step.student_step(step.generator_step(0, 1), 1), {}};
  for (const auto& name : tiny.student.parameters.names())
    result.parameters[name] = tiny.student.parameters.at(name).detach().clone();
  return result;
}

void expect_the_same(const Result& one, const Result& other) {
  EXPECT_NEAR(one.numbers.loss.item<double>(), other.numbers.loss.item<double>(), 1e-6);
  EXPECT_DOUBLE_EQ(one.numbers.agreement.item<double>(), other.numbers.agreement.item<double>());
  ASSERT_EQ(one.parameters.size(), other.parameters.size());
  for (const auto& [name, value] : one.parameters)
    EXPECT_TRUE(value.allclose(other.parameters.at(name), 1e-5, 1e-6)) << name;
}

TEST(StudentStep, InPartsIsThatOfTheBatch) {
  for (const auto term :
       {LossTerm::kl_divergence, LossTerm::pseudo_label_cross_entropy, LossTerm::cross_entropy,
        LossTerm::easy_cross_entropy, LossTerm::relative_feature_mse, LossTerm::channel_attention})
    for (const std::int64_t rows : {1, 3})
      expect_the_same(step_in_parts(8, term), step_in_parts(rows, term));
}

TEST(StudentStep, ASmallNetworkTakesTheBatchAtOnce) {
  const auto whole = step_in_parts(8), own = step_in_parts(0);
  for (const auto& [name, value] : whole.parameters)
    EXPECT_TRUE(value.equal(own.parameters.at(name))) << name;
}

}  // namespace
}  // namespace zsq::train::student_step_test
