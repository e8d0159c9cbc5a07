// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/drop_quantizers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::train {
namespace {

TEST(Chances, AreTrueForTheShareAndNewAtEachCall) {
  Chances chances(0.3, 40000, 1, at::kCPU);
  const auto like = at::zeros({10, 20, 10, 20}).contiguous(at::MemoryFormat::ChannelsLast);
  const auto a = chances.like(like), b = chances.like(like);
  EXPECT_EQ(a.strides(), like.strides());
  EXPECT_NEAR(a.to(at::kDouble).mean().item<double>(), 0.3, 0.02);
  // Independent ones differ in 2 * 0.3 * 0.7 of the places.
  EXPECT_NEAR(a.ne(b).to(at::kDouble).mean().item<double>(), 0.42, 0.02);
}

TEST(DropQuantizers, MixFloatAndQuantizedValues) {
  const at::NoGradGuard no_grad;
  const auto teacher = test::residual_network();
  QuantOptions options;
  options.weights.num_bits = 8;
  options.activations.num_bits = 2;
  auto student = test::quantized(teacher, options);
  const auto images = test::normal({8, 3, 12, 12}, 5);
  quant::calibrate(student, images, 8);
  const auto output = [&](double share) {
    const auto graph =
        drop_quantizers(student.graph, std::make_shared<Chances>(share, 1 << 20, 1, at::kCPU));
    return models::execute(graph, student.parameters, images);
  };
  EXPECT_TRUE(output(0).equal(models::execute(student.graph, student.parameters, images)));
  auto float_activations = student;
  for (const auto id : quant::activation_sites(float_activations.graph))
    float_activations.graph[id].op = models::Clip{-1e30f, 1e30f};
  const auto unquantized =
      models::execute(float_activations.graph, float_activations.parameters, images);
  EXPECT_TRUE(output(1).equal(unquantized));
  EXPECT_FALSE(output(0.5).equal(unquantized));
}

}  // namespace
}  // namespace zsq::train
