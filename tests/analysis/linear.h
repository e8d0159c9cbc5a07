// SPDX-License-Identifier: Apache-2.0
// A network whose derivatives can be written down: one linear layer on the mean of each channel.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include "analysis/student_function.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::analysis {

struct LinearCase {
  static constexpr std::int64_t kImages = 6, kChannels = 5, kClasses = 4;

  LinearCase() {
    const auto random = at::detail::createCPUGenerator(3);
    test::NetworkBuilder net(
        {kChannels, 2, 2}, [random](const std::string&, const std::string& role,
                                    const std::vector<std::int64_t>& shape) {
          return role == "bias" ? at::zeros(shape) : at::randn(shape, random, at::kFloat);
        });
    auto x = net.op("pool", models::GlobalAvgPool{}, {net.input()});
    x = net.op("flatten", models::Flatten{}, {x});
    teacher = net.finish(net.linear("fc", x, kChannels, kClasses), kClasses);
    QuantOptions options;
    options.mode = Mode::paper;
    options.first_last_bits = 0;
    options.weights.num_bits = 8;
    student = test::quantized(teacher, options);
    sample.images = at::randn({kImages, kChannels, 2, 2}, random, at::kFloat);
    sample.logits = at::randn({kImages, kClasses}, random, at::kFloat);
    sample.targets = at::softmax(at::randn({kImages, kClasses}, random, at::kFloat), 1);
    features = sample.images.mean({2, 3});
  }

  at::Tensor logits(const at::Tensor& weight) const { return features.mm(weight.t()); }

  models::Model teacher;
  quant::Student student;
  Sample sample;
  at::Tensor features;  // what the layer reads, [images, channels]
};

}  // namespace zsq::analysis
