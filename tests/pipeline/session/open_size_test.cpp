// SPDX-License-Identifier: Apache-2.0
// Which image size an ONNX file gets that leaves height and width open.
#include "pipeline/session/open_size.h"

#include <gtest/gtest.h>

#include "formats/onnx.h"
#include "models/load.h"
#include "pipeline/inspect.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::pipeline {
namespace {

class OpenSize : public testing::Test {
 protected:
  OpenSize() {
    test::NetworkBuilder net({3, 16, 16});
    auto x = net.conv_bn_relu("a", net.input(), 3, 4);
    x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
    const auto network = net.finish(net.linear("fc", x, 4, test::kShapeClasses));
    test::save_onnx(network, folder_ / "fixed.onnx");
    write("open.onnx", {});
    preset_ = folder_.file("preprocessor_config.json", R"({
      "do_resize": true, "size": {"shortest_edge": 28}, "do_center_crop": true,
      "crop_size": {"height": 24, "width": 20}, "do_normalize": true,
      "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]})");
  }
  void write(const std::string& name, const std::map<std::string, std::string>& metadata) {
    auto file = formats::onnx::read(folder_ / "fixed.onnx");
    for (const std::size_t side : {2, 3}) file.graph.inputs.at(0).shape.at(side) = {-1, "side"};
    file.metadata = metadata;
    formats::onnx::write(folder_ / name, file);
  }
  // That of the settings afterwards, "none" where they give none.
  std::string size_of(const std::string& file, std::vector<std::string> settings) {
    Recipe recipe = load_recipe("instant", settings);
    Observer silent;
    take_size_from_preprocessing(folder_ / file, recipe.data, recipe.model, silent);
    const auto& size = recipe.model.image_size;
    return size ? std::to_string(size->height) + "x" + std::to_string(size->width) : "none";
  }

  test::TempFolder folder_;
  std::filesystem::path preset_;
};

TEST_F(OpenSize, IsThatOfThePreprocessing) {
  const std::string preset = "data.preset=" + preset_.string();
  EXPECT_EQ(size_of("open.onnx", {preset}), "24x20");
  EXPECT_EQ(size_of("open.onnx", {"data.preset=torchvision", "data.size=40"}), "40x40");
  const auto report = inspect(folder_ / "open.onnx", load_recipe("instant", {preset}));
  EXPECT_EQ(report.input_shape, (std::vector<std::int64_t>{3, 24, 20}));
}

// An image size that is given, the file's own or the one that it records is not changed, and the
// presets of this program are for networks of any size.
TEST_F(OpenSize, GoesAfterWhatIsKnownOfTheNetwork) {
  const std::string preset = "data.preset=" + preset_.string();
  write("recorded.onnx", {{models::kImageSizeKey, "32x32"}});
  EXPECT_EQ(size_of("open.onnx", {preset, "model.image_size=48"}), "48x48");
  EXPECT_EQ(size_of("fixed.onnx", {preset}), "none");
  EXPECT_EQ(size_of("recorded.onnx", {preset}), "none");
  EXPECT_EQ(size_of("open.onnx", {"data.preset=torchvision"}), "none");
}

}  // namespace
}  // namespace zsq::pipeline
