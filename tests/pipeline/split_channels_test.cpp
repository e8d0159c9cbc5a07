// SPDX-License-Identifier: Apache-2.0
// A run that appends copies of channels, by everything that reads it afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "pipeline/compare.h"
#include "pipeline/export.h"
#include "pipeline/quantize.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::split_channels_test {
namespace {

models::Model inverted_residuals() {
  test::NetworkBuilder net({3, 16, 16}, test::varied_parameters(3));
  auto x = net.relu6("a", net.conv_bn("stem", net.input(), 3, 8));
  x = net.relu6("b", net.conv_bn("depthwise1", x, 8, 8, 3, 8));
  x = net.conv_bn("project1", x, 8, 8, 1);
  x = net.relu6("c", net.conv_bn("expand2", x, 8, 16, 1));
  x = net.relu6("d", net.conv_bn("depthwise2", x, 16, 16, 3, 16));
  x = net.conv_bn("project2", x, 16, 8, 1);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 8, test::kShapeClasses), test::kShapeClasses);
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SplitRun : public testing::Test {
 protected:
  SplitRun() : model_(folder_ / "network.onnx"), run_(folder_ / "run") {
    test::save_onnx(inverted_residuals(), model_);
    QuantizeOptions options;
    options.scheme = Scheme::parse("W4A4");
    options.recipe =
        load_recipe("instant", {"data.preset=cifar10", "process.threads=1",
                                "process.agreement_images=0", "quantize.equalize=depthwise",
                                "quantize.split_channels=8", "quantize.split_expansion=100"});
    report_ = quantize(model_, options, run_);
  }

  test::TempFolder folder_;
  std::filesystem::path model_, run_;
  QuantizeReport report_;
};

TEST_F(SplitRun, SaysWhatTheCopiesCost) {
  EXPECT_NE(report_.scheme.find("% more multiplications"), std::string::npos) << report_.scheme;
}

// In float there are no copies.
TEST_F(SplitRun, ComparesItsSizeWithTheNetworkAsItWasRead) {
  std::int64_t bytes = 0;
  const auto network = inverted_residuals();
  for (const auto& name : network.parameters.names())
    bytes += 4 * network.parameters.at(name).numel();
  EXPECT_EQ(report_.fp32_bytes, bytes);
}

TEST_F(SplitRun, IsExportedAgainToTheSameFile) {
  ExportRunOptions options;
  options.output = folder_ / "again.onnx";
  export_run(run_, options);
  EXPECT_TRUE(bytes_of(run_ / "model.onnx") == bytes_of(options.output));
}

TEST_F(SplitRun, ComparesWithItsTeacher) {
  CompareOptions options;
  options.recipe = load_recipe("auto", {"data.preset=cifar10", "process.threads=1"});
  options.images = 20;
  const auto result = compare_models(model_, run_, options);
  EXPECT_EQ(result.layers.size(), report_.layers.size());
  for (const auto& layer : result.layers) EXPECT_GT(layer.sqnr, 3) << layer.name;  // dB
}

}  // namespace
}  // namespace zsq::split_channels_test
