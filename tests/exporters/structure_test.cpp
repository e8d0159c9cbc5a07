// SPDX-License-Identifier: Apache-2.0
// Exported files have the structure that runtimes are fast with, whatever the layers and the bits.
#include "exporters/registry.h"
#include "models/clips_first.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::structure_test {
namespace {

QuantOptions scheme(std::int64_t bits) {
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = bits;
  options.weights.rounding = WeightRounding::squant;
  options.activations.calibration_images = 32;
  return options;
}

std::string faults_of(const models::Model& teacher, const QuantOptions& options) {
  const test::TempFolder folder;
  export_onnx(test::student_of(teacher, options), folder / "model.onnx", {});
  return test::structure_faults(folder / "model.onnx");
}

TEST(Structure, EveryLayerIsFastAtEveryWidth) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  for (const std::int64_t bits : {8, 7, 6, 4, 2})
    EXPECT_EQ(faults_of(test::layer_zoo(), scheme(bits)), "") << bits << " bits";
}

TEST(Structure, MixedWidths) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  QuantOptions options = scheme(4);
  options.weights.layer_bits = {{"depthwise", 8}, {"pointwise", 3}, {"grouped", 8}, {"fc", 6}};
  options.activations.layer_bits = {{"pointwise", 8}, {"dilated", 6}};
  EXPECT_EQ(faults_of(test::layer_zoo(), options), "");
  options.first_last_bits = 0;
  options.add_bits = 4;
  EXPECT_EQ(faults_of(test::layer_zoo(), options), "");
}

// A ReLU after a pool or an upsampling, as in LeNet and in decoders: a second grid there is one
// that onnxruntime leaves out, and then it computes the next convolution in float.
TEST(Structure, ClipsAfterMovesAreNoSecondGrid) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  test::NetworkBuilder net;
  auto x = net.op("pool", models::MaxPool{{2, 2}, {2, 2}}, {net.conv("a", net.input(), 3, 8)});
  x = net.op("up", models::Resize{{2, 2}}, {net.conv_bn("b", net.relu("pooled", x), 8, 8)});
  x = net.conv_bn_relu("c", net.relu6("larger", x), 8, 8);
  x = net.op("flatten", models::Flatten{}, {net.op("mean", models::GlobalAvgPool{}, {x})});
  models::Model teacher = net.finish(net.linear("fc", x, 8, 5));
  EXPECT_NE(faults_of(teacher, scheme(8)), "");
  models::put_clips_first(teacher);
  EXPECT_EQ(faults_of(teacher, scheme(8)), "");
}

TEST(Structure, ZeroPointsThatWereAskedForAreSeen) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  QuantOptions options = scheme(8);
  options.weights.symmetric = Symmetry::no;
  const std::string faults = faults_of(test::layer_zoo(), options);
  EXPECT_NE(faults.find("depthwise: its weight is uint8, not int8"), std::string::npos) << faults;
  EXPECT_NE(faults.find("fc: its weight has zero points"), std::string::npos) << faults;
}

}  // namespace
}  // namespace zsq::exporters::structure_test
