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
#include "train/trainer.h"

namespace zsq::train {

inline models::Model tiny_teacher() {
  models::Model model;
  auto& graph = model.graph;
  graph.input_shape = {3, 8, 8};
  graph.input = graph.add({"input", models::Input{}, {}});
  const auto random = at::detail::createCPUGenerator(7);
  const auto conv = [&](const std::string& name, models::NodeId x, std::int64_t in,
                        std::int64_t out) {
    auto& p = model.parameters;
    p.set(name + ".w", at::randn({out, in, 3, 3}, random, at::kFloat) / (3 * std::sqrt(in)));
    p.set(name + ".gamma", at::rand({out}, random, at::kFloat) + 0.5);
    p.set(name + ".beta", at::randn({out}, random, at::kFloat) * 0.3);
    p.set(name + ".mean", at::zeros({out}));
    p.set(name + ".variance", at::ones({out}));
    x = graph.add({name, models::Conv2d{.pads = {1, 1, 1, 1}}, {x}, {{"weight", name + ".w"}}});
    x = graph.add({name + ".bn",
                   models::BatchNorm{},
                   {x},
                   {{"gamma", name + ".gamma"},
                    {"beta", name + ".beta"},
                    {"mean", name + ".mean"},
                    {"variance", name + ".variance"}}});
    return graph.add({name + ".relu", models::Clip{}, {x}});
  };
  auto x = conv("conv1", graph.input, 3, 8);
  x = conv("conv2", x, 8, 8);
  x = graph.add({"pool", models::GlobalAvgPool{}, {x}});
  x = graph.add({"flatten", models::Flatten{}, {x}});
  model.parameters.set("fc.w", at::randn({4, 8}, random, at::kFloat));
  model.parameters.set("fc.b", at::zeros({4}));
  graph.output = graph.add({"fc", models::Linear{}, {x}, {{"weight", "fc.w"}, {"bias", "fc.b"}}});
  model.classes = 4;
  return model;
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
        student(quant::insert_quantizers(teacher, quant)),
        generator(teacher, {}, run_seed),
        seed(run_seed) {
    options.iterations = 10;
    options.batch_size = 8;
    options.warmup = 0.3;
    options.affine_lr = 1e-4;
    options.crossing_rate = 0.02;
  }
  TrainJob job() { return {teacher, student, generator, options, seed, 0, {}, 0, false}; }

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
  void on_message(LogLevel, const std::string& message) override { messages.push_back(message); }
  bool stop_requested() override { return stop_after == std::ssize(seen); }

  std::vector<Progress> seen;
  std::vector<std::string> messages;
  std::function<void(std::int64_t)> at_step;
  std::ptrdiff_t stop_after = -1;
};

inline void expect_equal(const models::ParameterStore& a, const models::ParameterStore& b) {
  ASSERT_EQ(a.names(), b.names());
  for (const auto& name : a.names()) EXPECT_TRUE(a.at(name).equal(b.at(name))) << name;
}

}  // namespace zsq::train
