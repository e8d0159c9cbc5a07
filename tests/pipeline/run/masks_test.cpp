// SPDX-License-Identifier: Apache-2.0
// Runs whose real images have masks.
#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/npy.h"
#include "models/execute.h"
#include "models/load.h"
#include "pipeline/evaluate.h"
#include "pipeline/quantize.h"
#include "tests/support/error_message.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::masks_test {
namespace {

struct Listener : Observer {
  void on_message(LogLevel level, const std::string& text) override {
    if (level == LogLevel::warning) warnings += text + "\n";
  }
  std::string warnings;
};

class Masks : public testing::Test {
 protected:
  // A map of four classes, and the network that averages it.
  Masks() {
    test::NetworkBuilder net;
    const auto x = net.conv_bn_relu("a", net.input(), 3, 8);
    const auto map = net.conv("map", x, 8, 4);
    test::save_onnx(net.finish(map), maps());
    test::NetworkBuilder other;
    auto y = other.conv("map", other.conv_bn_relu("a", other.input(), 3, 8), 8, 4);
    y = other.op("flatten", models::Flatten{}, {other.op("pool", models::GlobalAvgPool{}, {y})});
    test::save_onnx(other.finish(other.linear("fc", y, 4, 4), 4), folder_ / "classes.onnx");
    images_ = test::normal({6, 3, 12, 12}, 5);
    const auto model = models::load(maps());
    const auto row = models::execute(model.graph, model.parameters, images_);
    predicted_ = row.view({6, 4, 12, 12}).argmax(1);
    // A third of the pixels has another class.
    masks_ =
        at::where(test::normal({6, 12, 12}, 6).gt(0.43), (predicted_ + 1).remainder(4), predicted_);
    save(masks_);
  }
  std::filesystem::path maps() const { return folder_ / "maps.onnx"; }
  void save(const at::Tensor& masks) const {
    formats::write_npz(folder_ / "data.npz", {{"images", models::to_array(images_)},
                                              {"labels", models::to_array(masks.contiguous())}});
  }
  QuantizeReport quantize(const std::string& network, Observer* observer = nullptr) const {
    QuantizeOptions options;
    options.scheme = Scheme::parse("W4A4");
    options.recipe = load_recipe(
        "instant", {"data.preset=cifar10", "process.threads=1", "process.agreement_images=0"});
    options.recipe.data.eval_data = folder_ / "data.npz";
    return zsq::quantize(folder_ / network, options, folder_ / "out", observer);
  }

  test::TempFolder folder_;
  at::Tensor images_, predicted_, masks_;
};

TEST_F(Masks, ArePixelsOfBothNetworks) {
  const auto report = quantize("maps.onnx");
  ASSERT_TRUE(report.teacher_pixels && report.student_pixels);
  EXPECT_EQ(report.teacher_pixels->images, 6);
  EXPECT_NEAR(report.teacher_pixels->pixel_accuracy,
              100 * predicted_.eq(masks_).to(at::kDouble).mean().item<double>(), 1e-9);
  EvaluateOptions options;
  options.data.eval_data = folder_ / "data.npz";
  const auto student = evaluate(folder_ / "out", options);
  EXPECT_EQ(student.measured, "pixels");
  EXPECT_EQ(report.student_pixels->pixel_accuracy, student.pixel_accuracy);
  EXPECT_EQ(report.student_pixels->mean_iou, student.mean_iou);
  EXPECT_LT(student.pixel_accuracy, report.teacher_pixels->pixel_accuracy);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["student"]["pixels"]["mean_iou"], student.mean_iou);
  EXPECT_TRUE(json["student"]["top1"].is_null());
}

TEST_F(Masks, AreLeftOutWhereTheNetworkGivesNoMap) {
  Listener listener;
  const auto report = quantize("classes.onnx", &listener);
  EXPECT_FALSE(report.student_pixels || report.student);
  EXPECT_NE(listener.warnings.find("has masks, which are not counted"), std::string::npos);
}

// Which one image tells before the run begins.
TEST_F(Masks, OfAnotherSizeAreRefusedAtOnce) {
  save(masks_.slice(2, 0, 6));
  const auto message = test::error_message(ErrorCode::bad_input, [&] { quantize("maps.onnx"); });
  EXPECT_NE(message.find("12x12, the masks are 12x6"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

}  // namespace
}  // namespace zsq::masks_test
