// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/channel_correction.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/execute.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::channel_correction_test {
namespace {

// Four BatchNorm layers, two of them in a residual block.
models::Model teacher() { return test::residual_network(); }

at::Tensor images() { return test::normal({24, 3, 12, 12}, 5); }

Student student_of(const models::Model& model, std::int64_t bits) {
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = bits;
  options.first_last_bits = 0;
  options.image_bits = bits;
  options.activations.calibration_images = 24;
  Student student = test::quantized(model, options);
  calibrate(student, images(), 8);
  return student;
}

void correct(const models::Model& model, Student& student) {
  Observer silent;
  correct_channels({.teacher = model, .student = student, .images = images(), .batch_size = 7},
                   silent);
}

at::Tensor value_of(const models::Graph& graph, const models::ParameterStore& parameters,
                    const std::string& node) {
  models::Taps taps{{graph.id_of(node)}, {}};
  models::execute(graph, parameters, images(), &taps);
  return taps.values[0].transpose(0, 1).flatten(1).to(at::kDouble);  // [C, values]
}

std::string first_norm(const models::Model& model) {
  for (const auto& node : model.graph.nodes)
    if (models::is<models::BatchNorm>(node)) return node.name;
  return "";
}

// With 8 bits next to nothing is lost, so what is taken from a channel on purpose comes back.
TEST(ChannelCorrection, AWeakenedChannelGetsItsStrengthBack) {
  const auto model = teacher();
  Student student = student_of(model, 8);
  const std::string norm = first_norm(model);
  const auto gamma = student.parameters.at(norm + ".gamma").clone(),
             beta = student.parameters.at(norm + ".beta").clone();
  student.parameters.at(norm + ".gamma").mul_(0.8);
  student.parameters.at(norm + ".beta").mul_(0.8).add_(0.3);
  correct(model, student);
  EXPECT_LT(student.parameters.at(norm + ".gamma").div(gamma).sub(1).abs().max().item<double>(),
            0.01);
  EXPECT_LT(student.parameters.at(norm + ".beta").sub(beta).abs().max().item<double>(), 0.02);
}

TEST(ChannelCorrection, AFactorHasLimits) {
  const auto model = teacher();
  for (const double factor : {0.1, 5.0}) {
    Student student = student_of(model, 8);
    const std::string norm = first_norm(model);
    const auto gamma = student.parameters.at(norm + ".gamma").mul(factor);
    student.parameters.set(norm + ".gamma", gamma);
    correct(model, student);
    const auto f = student.parameters.at(norm + ".gamma").div(gamma);
    EXPECT_LT(f.sub(factor < 1 ? 1.4 : 0.7).abs().max().item<double>(), 1e-6) << f;
  }
}

// Of the first BatchNorm, which nothing corrected precedes, by the formula in plain ATen.
TEST(ChannelCorrection, IsTheFormulaOfTheHeader) {
  const auto model = teacher();
  Student student = student_of(model, 2);
  const std::string norm = first_norm(model);
  const auto t = value_of(model.graph, model.parameters, norm),
             s = value_of(student.graph, student.parameters, norm);
  const auto deviation = [](const at::Tensor& x) { return x.std(1, /*unbiased=*/false); };
  const auto rho =
      (t - t.mean(1, true)).mul(s - s.mean(1, true)).mean(1) / (deviation(t) * deviation(s));
  const auto f = (deviation(t) / deviation(s) * rho.pow(-0.25)).clamp(0.7, 1.4);
  ASSERT_GT(rho.min().item<double>(), 0);
  ASSERT_GT(f.sub(1).abs().max().item<double>(), 0.02);
  const auto before = student.parameters.clone();
  correct(model, student);
  const auto gamma = before.at(norm + ".gamma").to(at::kDouble) * f;
  const auto beta = before.at(norm + ".beta").to(at::kDouble) * f + t.mean(1) - f * s.mean(1);
  const auto difference = [&](const char* role, const at::Tensor& expected) {
    return student.parameters.at(norm + role).sub(expected).abs().max().item<double>();
  };
  EXPECT_LT(difference(".gamma", gamma), 1e-5);
  EXPECT_LT(difference(".beta", beta), 1e-5);
}

// At every BatchNorm, also after corrected ones: the student's mean is the teacher's.
TEST(ChannelCorrection, MeansAgreeThroughoutAndNothingElseChanges) {
  const auto model = teacher();
  Student student = student_of(model, 3);
  const auto before = student.parameters.clone();
  correct(model, student);
  for (const auto& node : model.graph.nodes) {
    if (!models::is<models::BatchNorm>(node)) continue;
    const auto t = value_of(model.graph, model.parameters, node.name),
               s = value_of(student.graph, student.parameters, node.name);
    EXPECT_LT(t.mean(1).sub(s.mean(1)).abs().max().item<double>(), 1e-4) << node.name;
  }
  for (const auto& name : before.names()) {
    if (name.ends_with(".gamma") || name.ends_with(".beta")) continue;
    EXPECT_TRUE(at::equal(before.at(name), student.parameters.at(name))) << name;
  }
}

// A channel that is constant has no strength to get back.
TEST(ChannelCorrection, ConstantChannelsOnlyShift) {
  auto model = teacher();
  const std::string norm = first_norm(model);
  model.parameters.at(norm + ".gamma")[1] = 0;
  Student student = student_of(model, 8);
  student.parameters.at(norm + ".beta")[1] += 2;
  correct(model, student);
  EXPECT_EQ(student.parameters.at(norm + ".gamma")[1].item<float>(), 0);
  EXPECT_NEAR(student.parameters.at(norm + ".beta")[1].item<double>(),
              model.parameters.at(norm + ".beta")[1].item<double>(), 1e-5);
}

// Two layers with one gamma get one each, and a student that is built anew finds them.
TEST(ChannelCorrection, SharedParametersBecomeOnesOwn) {
  auto model = teacher();
  std::vector<std::string> norms;
  for (auto& node : model.graph.nodes) {
    if (!models::is<models::BatchNorm>(node)) continue;
    norms.push_back(node.name);
    node.params["gamma"] = norms[0] + ".gamma";
  }
  Student student = student_of(model, 3);
  const auto original = student.parameters.at(norms[0] + ".gamma").clone();
  correct(model, student);
  EXPECT_TRUE(at::equal(original, student.parameters.at(norms[0] + ".gamma")));
  Student again = test::quantized(model, student.options);
  again.parameters = student.parameters.clone();
  adopt_corrected_biases(again);
  EXPECT_TRUE(at::equal(models::execute(again.graph, again.parameters, images()),
                        models::execute(student.graph, student.parameters, images())));
}

TEST(ChannelCorrection, StopsIfAsked) {
  struct : Observer {
    bool stop_requested() override { return true; }
  } stopping;
  const auto model = teacher();
  Student student = student_of(model, 4);
  try {
    correct_channels({.teacher = model, .student = student, .images = images()}, stopping);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stopped);
  }
}

}  // namespace
}  // namespace zsq::quant::channel_correction_test
