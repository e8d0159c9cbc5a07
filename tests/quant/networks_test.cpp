// SPDX-License-Identifier: Apache-2.0
// Real networks through the whole of quant/.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "models/load.h"
#include "quant/fold_batch_norm.h"
#include "quant/ranges.h"
#include "tests/quant/net.h"
#include "tests/support/shared.h"

namespace zsq::quant {
namespace {

at::Tensor noise(const models::Graph& graph, std::int64_t n, std::uint64_t seed) {
  const auto& [c, h, w] = graph.input_shape;
  return test::normal({n, c, h, w}, seed);
}

class Importable : public testing::TestWithParam<const char*> {};

TEST_P(Importable, StudentRunsInBothModes) {
  const auto path = test::shared_path("importer") / GetParam();
  ZSQ_SKIP_WITHOUT(path);
  const at::NoGradGuard no_grad;
  const auto teacher = models::load(path);
  const auto x = noise(teacher.graph, 2, 1);
  for (const Mode mode : {Mode::paper, Mode::deploy}) {
    QuantOptions options;
    options.mode = mode;
    options.activations.calibration_images = 2;
    auto student = insert_quantizers(teacher, options);
    calibrate(student, [&] { return x; });
    const auto y = models::execute(student.graph, student.parameters, x);
    EXPECT_TRUE(y.isfinite().all().item<bool>());
    EXPECT_GT(y.std().item<float>(), 0);
    const auto fused = fuse_activations(student.graph);
    EXPECT_TRUE(at::equal(y, models::execute(fused, student.parameters, x)));
    for (const auto& site : weight_sites(student))
      EXPECT_TRUE(integer_weights(student, site).scale.isfinite().all().item<bool>());
    EXPECT_EQ(float_tensors(student).empty(), mode == Mode::deploy);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Importable,
                         testing::Values("resnet18_w25.onnx", "resnet14_bottleneck.onnx",
                                         "mobilenet_v2_w35.onnx", "shufflenet_v2_x0_5.onnx",
                                         "mobilenet_v3_small.onnx", "densenet_tiny.onnx",
                                         "regnet_se_tiny.onnx", "vgg_bn_tiny.onnx",
                                         "resnet20_random.onnx", "resnet10_dynamo.onnx"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

// 130 channels of this network have variance 0, most of them with almost no weights.
TEST(Networks, DeadChannelsFitAnInt32Bias) {
  const auto path = test::shared_path("models/efficientnet_lite0.onnx");
  ZSQ_SKIP_WITHOUT(path);
  const at::NoGradGuard no_grad;
  QuantOptions options;
  options.activations.range = ActivationRange::min_max;
  options.activations.calibration_images = 1;
  auto student = insert_quantizers(models::load(path), options);
  calibrate(student, [&] { return noise(student.graph, 1, 1); });
  for (const auto& site : weight_sites(student)) {
    const auto integer = integer_weights(student, site);
    const auto* input = activation_quantizer(student.graph[student.graph[site.layer].inputs[0]]);
    const double step = student.parameters.at(input->scale_name()).item<double>();
    const auto bias = integer.bias.to(at::kDouble).div(integer.scale.to(at::kDouble).mul(step));
    EXPECT_LT(bias.abs().max().item<double>(), 1.001 * (1 << 30)) << input->scale_name();
  }
}

// Smoke: at 8 bits a trained network decides as before.
TEST(Networks, EightBitsDecideAlike) {
  const auto path = test::shared_path("models/resnet20_cifar10.onnx");
  ZSQ_SKIP_WITHOUT(path);
  const at::NoGradGuard no_grad;
  const auto teacher = models::load(path);
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = 8;
  options.activations.calibration_images = 64;
  auto student = insert_quantizers(teacher, options);
  calibrate(student, [&] { return noise(teacher.graph, 64, 1); });
  const auto x = noise(teacher.graph, 200, 2);
  const auto same = models::execute(teacher.graph, teacher.parameters, x)
                        .argmax(1)
                        .eq(models::execute(student.graph, student.parameters, x).argmax(1));
  EXPECT_GT(same.to(at::kDouble).mean().item<double>(), 0.95);
}

}  // namespace
}  // namespace zsq::quant
