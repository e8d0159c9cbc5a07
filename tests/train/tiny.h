// SPDX-License-Identifier: Apache-2.0
// A network of random weights that trains in milliseconds: two convolutions with BatchNorm and
// ReLU, pooling, a linear layer; 3 x 8 x 8 images, 4 classes.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>

#include "generator/generator.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"
#include "train/trainer.h"

namespace zsq::train {

inline models::Model tiny_teacher() {
  const auto random = at::detail::createCPUGenerator(7);
  test::NetworkBuilder net({3, 8, 8},
                           [random](const std::string&, const std::string& role,
                                    const std::vector<std::int64_t>& shape) -> at::Tensor {
                             if (role == "mean" || role == "bias") return at::zeros(shape);
                             if (role == "variance") return at::ones(shape);
                             if (role == "gamma") return at::rand(shape, random, at::kFloat) + 0.5;
                             if (role == "beta") return at::randn(shape, random, at::kFloat) * 0.3;
                             const double unit = shape.size() == 4 ? 3 * std::sqrt(shape[1]) : 1;
                             return at::randn(shape, random, at::kFloat) / unit;
                           });
  auto x = net.conv_bn_relu("conv1", net.input(), 3, 8);
  x = net.conv_bn_relu("conv2", x, 8, 8);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 8, 4), 4);
}

inline QuantOptions four_bits(bool range_every_step = false) {
  QuantOptions options;
  options.mode = Mode::paper;
  options.first_last_bits = 0;
  options.weights.range = WeightRange::min_max;
  options.weights.range_every_step = range_every_step;
  options.activations.range = ActivationRange::min_max;
  options.activations.calibration_images = 16;
  return options;
}

// A short run on the tiny network.
struct Tiny {
  explicit Tiny(std::uint64_t run_seed = 1, const QuantOptions& quant = four_bits())
      : teacher(tiny_teacher()),
        student(test::quantized(teacher, quant)),
        generator(teacher, {}, run_seed),
        seed(run_seed) {
    options.iterations = 10;
    options.batch_size = 8;
    options.warmup = 0.3;
    options.affine_lr = 1e-4;
    options.crossing_rate = 0.02;
  }
  TrainJob job(parallel::Communicator& ranks = parallel::alone()) {
    return {.teacher = teacher,
            .student = student,
            .generator = generator,
            .options = options,
            .seed = seed,
            .ranks = ranks};
  }

  models::Model teacher;
  quant::Student student;
  generator::Generator generator;
  TrainOptions options;
  std::uint64_t seed;
};

// Keeps what is reported; asks to stop after a number of steps.
struct Watch : Observer {
  void on_progress(const Progress& p) override {
    seen.push_back(p);
    if (at_step) at_step(p.step);
  }
  void on_measurement(const Progress& p) override { measured.push_back(p); }
  void on_message(LogLevel, const std::string& message) override { messages.push_back(message); }
  bool stop_requested() override { return stop_after == std::ssize(seen); }

  std::vector<Progress> seen, measured;
  std::vector<std::string> messages;
  std::function<void(std::int64_t)> at_step;
  std::ptrdiff_t stop_after = -1;
};

inline void expect_equal(const models::ParameterStore& a, const models::ParameterStore& b) {
  ASSERT_EQ(a.names(), b.names());
  for (const auto& name : a.names()) EXPECT_TRUE(a.at(name).equal(b.at(name))) << name;
}

}  // namespace zsq::train
