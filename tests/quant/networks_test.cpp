// SPDX-License-Identifier: Apache-2.0
// Real networks through the whole of quant/.
#include "tests/support/networks.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "formats/npy.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/calibration/ranges.h"
#include "quant/fold_batch_norm.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

at::Tensor noise(const models::Graph& graph, std::int64_t n, std::uint64_t seed) {
  const auto& [c, h, w] = graph.input_shape;
  return test::normal({n, c, h, w}, seed);
}

class Importable : public testing::TestWithParam<const char*> {};

TEST_P(Importable, StudentRunsInBothModes) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto path = test::network_path(std::string(GetParam()) + ".onnx");
  const at::NoGradGuard no_grad;
  const auto teacher = models::load(path);
  const auto x = noise(teacher.graph, 2, 1);
  for (const Mode mode : {Mode::paper, Mode::deploy}) {
    QuantOptions options;
    options.mode = mode;
    options.activations.calibration_images = 2;
    auto student = test::quantized(teacher, options);
    calibrate(student, [&] { return x; });
    const auto y = models::execute(student.graph, student.parameters, x);
    EXPECT_TRUE(y.isfinite().all().item<bool>());
    EXPECT_GT(y.std().item<float>(), 0);
    const auto fused = fuse_activations(student.graph);
    // BatchNorm rounds differently inside the fused kernel: a value on the border of two codes may
    // fall to the other, and what follows follows.
    const auto difference = y - models::execute(fused, student.parameters, x);
    EXPECT_LT(difference.norm().item<float>(), 0.2 * y.norm().item<float>());
    for (const auto& site : weight_sites(student))
      EXPECT_TRUE(integer_weights(student, site).scale.isfinite().all().item<bool>());
    EXPECT_EQ(float_tensors(student).empty(), mode == Mode::deploy);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Importable,
                         testing::Values("resnet18_w25", "resnet14_bottleneck", "resnet20_random",
                                         "resnet20_padded", "mobilenet_v2_w35",
                                         "mobilenet_v3_small", "shufflenet_v2_x0_5",
                                         "densenet_tiny", "regnet_se_tiny", "vgg_bn_tiny",
                                         "resnet18_w25_dynamo"),
                         [](const auto& info) { return std::string(info.param); });

// 130 channels of this network have variance 0, most of them with almost no weights.
TEST(Networks, DeadChannelsFitAnInt32Bias) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const at::NoGradGuard no_grad;
  QuantOptions options;
  options.activations.range = ActivationRange::min_max;
  options.activations.calibration_images = 1;
  auto student =
      test::quantized(models::load(test::network_path("efficientnet_lite0.onnx")), options);
  calibrate(student, [&] { return noise(student.graph, 1, 1); });
  for (const auto& site : weight_sites(student)) {
    const auto integer = integer_weights(student, site);
    const auto* input = activation_quantizer(student.graph[student.graph[site.layer].inputs[0]]);
    const double step = student.parameters.at(input->scale_name()).item<double>();
    const auto bias = integer.bias.to(at::kDouble).div(integer.scale.to(at::kDouble).mul(step));
    EXPECT_LT(bias.abs().max().item<double>(), 1.001 * (1 << 30)) << input->scale_name();
  }
}

// Smoke: at 8 bits a trained network decides as before on photographs.
TEST(Networks, EightBitsDecideAlike) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const at::NoGradGuard no_grad;
  const auto teacher = models::load(test::network_path("efficientnet_lite0.onnx"));
  const auto data = formats::read_npz(test::network_path("photographs.npz"));
  const auto images = models::to_tensor(*formats::find(data, "images"));
  const auto labels = models::to_tensor(*formats::find(data, "labels"));
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = 8;
  options.activations.calibration_images = 4;
  auto student = test::quantized(teacher, options);
  calibrate(student, [&] { return images.narrow(0, 0, 4); });
  const auto same = models::execute(student.graph, student.parameters, images).argmax(1).eq(labels);
  EXPECT_GT(same.to(at::kDouble).mean().item<double>(), 0.8);
}

}  // namespace
}  // namespace zsq::quant
