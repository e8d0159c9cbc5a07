// SPDX-License-Identifier: Apache-2.0
#include "analysis/student_function.h"

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include "analysis/training.h"
#include "models/execute.h"
#include "tests/analysis/linear.h"
#include "tests/train/tiny.h"

namespace zsq::analysis {
namespace {

TEST(StudentFunction, WithoutQuantizersItIsTheNetwork) {
  const LinearCase net;
  const StudentFunction student(net.student, /*quantized=*/false);
  ASSERT_EQ(student.layers(), (std::vector<std::string>{"fc"}));
  const Tensors weights = student.weights();
  EXPECT_TRUE(
      at::allclose(student.logits(net.sample.images, weights), net.logits(weights[0]), 1e-5, 1e-6));
}

// d CE / dW = (softmax(z) - t)' x / N;  d tau^2 KL / dW = tau (softmax(z / tau) - softmax(T /
// tau))' x / N
TEST(StudentFunction, GradientsAreThoseOfSoftmaxRegression) {
  const LinearCase net;
  const StudentFunction student(net.student, /*quantized=*/false);
  const Tensors weights = student.weights();
  const auto z = net.logits(weights[0]);
  const double tau = 3;
  const auto n = static_cast<double>(LinearCase::kImages);
  const auto of_labels = (at::softmax(z, 1) - net.sample.targets).t().mm(net.features) / n;
  const auto of_teacher = (at::softmax(z / tau, 1) - at::softmax(net.sample.logits / tau, 1))
                              .t()
                              .mm(net.features)
                              .mul(tau / n);
  const auto gradient = [&](Objective objective) {
    return student.gradient(objective, net.sample, tau, weights)[0];
  };
  EXPECT_TRUE(at::allclose(gradient(Objective::cross_entropy), of_labels, 1e-4, 1e-6));
  EXPECT_TRUE(at::allclose(gradient(Objective::kl_divergence), of_teacher, 1e-4, 1e-6));
  EXPECT_TRUE(at::allclose(gradient(Objective::both), of_labels + of_teacher, 1e-4, 1e-6));
}

TEST(StudentFunction, QuantizedItIsTheStudentAndChangesNothingOfIt) {
  train::Tiny tiny;
  Training training({tiny.teacher, train::four_bits(), {}, tiny.options, 1});
  Observer observer;
  training.run(observer);
  const auto& student = training.student();
  const StudentFunction function(student, /*quantized=*/true);
  const auto sample = training.held_out(8);
  const auto expected = models::execute(student.graph, student.parameters, sample.images);
  const Tensors weights = function.weights();
  EXPECT_TRUE(at::allclose(function.logits(sample.images, weights), expected, 1e-4, 1e-5));
  // Other weights give other logits; the student stays as it is.
  Tensors moved = function.weights();
  moved[0].add_(1);
  EXPECT_FALSE(at::allclose(function.logits(sample.images, moved), expected, 1e-2, 1e-2));
  EXPECT_TRUE(models::execute(student.graph, student.parameters, sample.images).equal(expected));
  EXPECT_NE(function.loss(Objective::both, sample, 20, moved),
            function.loss(Objective::both, sample, 20, weights));
}

}  // namespace
}  // namespace zsq::analysis
