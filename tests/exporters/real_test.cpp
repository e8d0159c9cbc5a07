// SPDX-License-Identifier: Apache-2.0
// Real networks on real images: everything runs in integers, and predicts what the student
// predicts.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "eval/evaluate.h"
#include "exporters/registry.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/calibration/ranges.h"
#include "tests/exporters/python.h"
#include "tests/support/networks.h"
#include "tests/support/quantized.h"
#include "tests/support/shared.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters {
namespace {

struct RealCase {
  std::string name;
  std::filesystem::path model, calibration, test;
  std::string preset;
  std::int64_t bits, images, convs;
  double agreement;
  double distance;  // root of the mean square, in ranges of the logits
};
std::ostream& operator<<(std::ostream& stream, const RealCase& c) { return stream << c.name; }

// Those that are made for the tests, and the trained ones beside the repository where it is there.
std::vector<RealCase> real_cases() {
  const auto made = test::network_path("");
  const auto cifar = made / "cifar10/test_batch.bin", photographs = made / "photographs";
  std::vector<RealCase> cases{{"resnet20_8bit", made / "resnet20_random.onnx", cifar, cifar,
                               "cifar10", 8, 64, 21, 0.95, 0.15},
                              {"resnet20_4bit", made / "resnet20_random.onnx", cifar, cifar,
                               "cifar10", 4, 64, 21, 0.9, 0.15},
                              {"efficientnet_lite0", made / "efficientnet_lite0.onnx", photographs,
                               photographs, "efficientnet_lite0", 8, 6, 49, 1.0, 0.01}};
  const auto shared = test::shared_path("");
  if (!std::filesystem::exists(shared / "models/resnet20_cifar10.onnx")) return cases;
  const auto trained = shared / "models/resnet20_cifar10.onnx";
  const auto train = shared / "data/cifar10/data_batch_1.bin";
  const auto test = shared / "data/cifar10/test_batch.bin";
  cases.push_back({"trained_resnet20_8bit", trained, train, test, "cifar10", 8, 64, 19, 1.0, 0.01});
  cases.push_back({"trained_resnet20_4bit", trained, train, test, "cifar10", 4, 64, 19, 0.9, 0.08});
  return cases;
}

class RealNetwork : public testing::TestWithParam<RealCase> {};

TEST_P(RealNetwork, RunsInIntegersAndPredictsTheSame) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const RealCase& c = GetParam();
  const at::NoGradGuard no_grad;
  const models::Model teacher = models::load(c.model);
  const auto& shape = teacher.graph.input_shape;
  const auto preprocessing = eval::resolve({.preset = c.preset}, {shape[1], shape[2]});
  const auto calibration = eval::open_data(c.calibration.string(), preprocessing);
  const auto source = eval::open_data(c.test.string(), preprocessing);

  QuantOptions options;
  options.weights.num_bits = c.bits;
  options.activations.num_bits = c.bits;
  options.activations.range = ActivationRange::min_max;
  options.activations.calibration_images = c.images;
  std::tie(options.image_lo, options.image_hi) = preprocessing.value_limits();
  quant::Student student = test::quantized(teacher, options);
  quant::calibrate(
      student, [&] { return calibration->load(calibration->size() - c.images, c.images).images; });

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
  const at::Tensor logits = models::execute(student.graph, student.parameters, images);
  // Files round sums in integers and the student in floats, so that now and then a code differs.
  const double distance = (result.logits - logits).square().mean().sqrt().item<double>();
  const double range = (logits.amax(1) - logits.amin(1)).mean().item<double>();
  EXPECT_LT(distance, c.distance * range);
  // Classes that are so close in the student itself are a tie.
  const at::Tensor theirs = logits.gather(1, result.logits.argmax(1, true)).squeeze(1);
  const at::Tensor same = (logits.amax(1) - theirs).le(2 * distance);
  EXPECT_GE(same.to(at::kDouble).mean().item<double>(), c.agreement);
}

INSTANTIATE_TEST_SUITE_P(Files, RealNetwork, testing::ValuesIn(real_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zsq::exporters
