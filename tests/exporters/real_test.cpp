// SPDX-License-Identifier: Apache-2.0
// Real networks on real images: everything runs in integers, and predicts what the student
// predicts.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "eval/evaluate.h"
#include "exporters/export.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/ranges.h"
#include "tests/exporters/python.h"
#include "tests/support/shared.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters {
namespace {

struct RealCase {
  std::string model, preset, calibration, test;
  std::int64_t bits, images, convs;
  double agreement;
};

class RealNetwork : public testing::TestWithParam<RealCase> {};

TEST_P(RealNetwork, RunsInIntegersAndPredictsTheSame) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const RealCase& c = GetParam();
  ZSQ_SKIP_WITHOUT(test::shared_path(c.model));
  ZSQ_SKIP_WITHOUT(test::shared_path(c.test));
  const at::NoGradGuard no_grad;
  const models::Model teacher = models::load(test::shared_path(c.model));
  const auto& shape = teacher.graph.input_shape;
  const auto preprocessing = eval::resolve({.preset = c.preset}, {shape[1], shape[2]});
  const auto calibration =
      eval::open_data(test::shared_path(c.calibration).string(), preprocessing);
  const auto source = eval::open_data(test::shared_path(c.test).string(), preprocessing);

  QuantOptions options;
  options.weights.num_bits = c.bits;
  options.activations.num_bits = c.bits;
  options.activations.range = ActivationRange::min_max;
  options.activations.calibration_images = c.images;
  std::tie(options.image_lo, options.image_hi) = preprocessing.value_limits();
  quant::Student student = quant::insert_quantizers(teacher, options);
  quant::calibrate(student, [&] { return calibration->load(100, c.images).images; });

  const test::TempFolder folder;
  const auto path = folder / "model.onnx";
  const ExportReport report = export_onnx(student, path, {});
  for (const ExecutesAs& layer : report.layers) EXPECT_EQ(layer.executes_as, "int8") << layer.layer;
  const at::Tensor images = source->load(0, c.images).images;
  const test::RuntimeResult result = test::run_in_onnxruntime(path, images);
  EXPECT_EQ(result.convs, c.convs);
  EXPECT_EQ(result.integer_convs, c.convs);
  EXPECT_EQ(result.integer_gemms, 1);
  EXPECT_EQ(result.codes_off, 0) << "of " << result.codes << ", by up to " << result.largest_off;
  const at::Tensor predicted = models::execute(student.graph, student.parameters, images).argmax(1);
  EXPECT_GE(result.logits.argmax(1).eq(predicted).to(at::kDouble).mean().item<double>(),
            c.agreement);
}

INSTANTIATE_TEST_SUITE_P(Shared, RealNetwork,
                         testing::Values(RealCase{"models/resnet20_cifar10.onnx", "cifar10",
                                                  "data/cifar10/data_batch_1.bin",
                                                  "data/cifar10/test_batch.bin", 8, 64, 19, 1.0},
                                         RealCase{"models/resnet20_cifar10.onnx", "cifar10",
                                                  "data/cifar10/data_batch_1.bin",
                                                  "data/cifar10/test_batch.bin", 4, 64, 19, 0.9},
                                         RealCase{"models/efficientnet_lite0.onnx",
                                                  "efficientnet_lite0", "data/imagenet_sample",
                                                  "data/imagenet_sample", 8, 6, 49, 1.0}),
                         [](const auto& info) {
                           return info.param.preset + "_" + std::to_string(info.param.bits) + "bit";
                         });

}  // namespace
}  // namespace zsq::exporters
