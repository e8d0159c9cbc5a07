// SPDX-License-Identifier: Apache-2.0
// Training on a CUDA device that is emulated (tests/support/emulated_cuda/device.h): it gives what
// it gives on the CPU, and between two reads of the metrics nothing waits for the device.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "cuda_kernels/device.h"
#include "tests/support/emulated_cuda/device.h"
#include "tests/support/quantized.h"
#include "tests/support/seed_each_test.h"
#include "tests/train/tiny.h"
#include "train/delayed_metrics.h"
#include "train/images/image_bank.h"
#include "train/step.h"

namespace zsq::train::device_step_test {
namespace {

// The tiny network, on a device.
struct OnDevice : Tiny {
  explicit OnDevice(c10::Device device) {
    for (const auto& name : teacher.parameters.names())
      teacher.parameters.set(name, teacher.parameters.at(name).to(device));
    student = test::quantized(teacher, four_bits());
    generator = generator::Generator(teacher, {}, seed);
  }
};

using Change = std::function<void(TrainOptions&)>;
const std::vector<std::pair<const char*, Change>> kVariants = {
    {"defaults", [](TrainOptions&) {}},
    {"learnable scales", [](TrainOptions& o) { o.learnable_scales = LearnableScales::all; }},
    {"most terms of the loss",
     [](TrainOptions& o) {
       o.loss_terms = {{LossTerm::kl_divergence, 1},
                       {LossTerm::feature_mse, 1},
                       {LossTerm::channel_attention, 1},
                       {LossTerm::cross_entropy, 1},
                       {LossTerm::perturbed_kl_divergence, 1},
                       {LossTerm::easy_cross_entropy, 1},
                       {LossTerm::grad_cam, 1}};
     }},
    {"labels of the teacher",
     [](TrainOptions& o) {
       o.loss_terms = {{LossTerm::kl_divergence, 1}, {LossTerm::pseudo_label_cross_entropy, 1}};
     }},
    {"no inundation", [](TrainOptions& o) { o.inundation = Inundation::off; }},
    {"bf16", [](TrainOptions& o) { o.precision = Precision::bf16; }},
};

TEST(DeviceStep, NothingWaitsForTheDeviceBetweenReads) {
  for (const auto& [name, change] : kVariants) {
    SCOPED_TRACE(name);
    OnDevice run(at::kCUDA);
    change(run.options);
    const BankDraws bank({at::randn({20, 3, 8, 8}), {}}, 0.25, {}, 1);
    Step step(run.teacher, run.student, run.generator, run.options);
    step.calibrate();
    Tally tally;
    Watch watch;
    const DelayedMetrics metrics(run.options, 16, tally, watch);
    for (const bool with_bank : {false, true}) {
      test::reset_waits();
      for (std::uint64_t i = 0; i < 3; ++i) {
        auto batch = step.generator_step(i, 1);
        if (with_bank) batch = bank.mixed(batch, run.teacher, step.feature_nodes(), i);
        const auto student = step.student_step(batch, 1);
        metrics.numbers_of(batch);
        metrics.numbers_of(student);
      }
      EXPECT_EQ(test::describe_waits(), "") << (with_bank ? "with a bank" : "");
    }
  }
}

TEST(DeviceStep, LearnsWhatTheCpuLearns) {
  for (const auto& [name, change] : kVariants) {
    if (std::string_view(name) == "bf16") continue;  // first layers round at other places there
    SCOPED_TRACE(name);
    std::vector<std::vector<double>> losses;
    for (const auto device : {at::kCPU, at::kCUDA}) {
      OnDevice run(device);
      change(run.options);
      Step step(run.teacher, run.student, run.generator, run.options);
      step.calibrate();
      auto& found = losses.emplace_back();
      for (std::uint64_t i = 0; i < 4; ++i) {
        const auto batch = step.generator_step(i, 1);
        found.push_back(batch.loss.item<double>());
        found.push_back(step.student_step(batch, 1).loss.item<double>());
      }
    }
    for (std::size_t i = 0; i < losses[0].size(); ++i)
      EXPECT_NEAR(losses[1][i], losses[0][i], 1e-3 * std::abs(losses[0][i])) << i;
  }
}

}  // namespace
}  // namespace zsq::train::device_step_test
