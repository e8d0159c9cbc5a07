// SPDX-License-Identifier: Apache-2.0
// Networks whose running statistics are those of images in a known range.
#include "pipeline/session/pixel_range.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "generator/dead_leaves.h"
#include "models/execute.h"
#include "models/load.h"
#include "pipeline/session/pixel_statistics.h"
#include "tests/support/seed_each_test.h"
#include "tests/support/shared.h"

namespace zsq::pipeline {
namespace {

using models::NodeId;

struct Affine {
  std::vector<double> scale, shift;  // of a pixel of 0 to 1, one per channel or one for all
  at::Tensor operator()(const at::Tensor& shares) const {
    const auto of = [](const auto& x) { return at::tensor(x, at::kFloat).view({-1, 1, 1}); };
    return shares * of(scale) + of(shift);
  }
};
const Affine kBytes{{255}, {0}}, kShares{{1}, {0}}, kSigned{{2}, {-1}}, kHalf{{1}, {-0.5}},
    kImageNet{{1 / 0.229, 1 / 0.224, 1 / 0.225}, {-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225}},
    kWithoutMean{{255}, {-103.939, -116.779, -123.68}};

enum class First { convolution, batch_norm, constants };

// [BatchNorm or a product and a sum,] two convolutions with BatchNorm and ReLU, whose statistics
// are those of `images`.
models::Model network_of(const at::Tensor& images, First first = First::convolution,
                         bool norms = true) {
  models::Model model;
  models::Graph& graph = model.graph;
  graph.input_shape = {images.size(1), images.size(2), images.size(3)};
  graph.input = graph.output = graph.add({"x", models::Input{}, {}});
  const auto run = [&] { return models::execute(graph, model.parameters, images); };
  const auto norm = [&](const std::string& name) {
    if (!norms && name != "first") return;
    const at::Tensor seen = run();
    const auto n = seen.size(1);
    model.parameters.set(name + ".mean", seen.mean({0, 2, 3}));
    model.parameters.set(name + ".variance", seen.var({0, 2, 3}));
    model.parameters.set(name + ".gamma", at::ones({n}));
    model.parameters.set(name + ".beta", at::zeros({n}));
    graph.output = graph.add({name,
                              models::BatchNorm{},
                              {graph.output},
                              {{"mean", name + ".mean"},
                               {"variance", name + ".variance"},
                               {"gamma", name + ".gamma"},
                               {"beta", name + ".beta"}}});
  };
  const auto constant = [&](const std::string& name, double value) {
    model.parameters.set(name, at::ones({1, 1, 1}).mul(value));
    return graph.add({name, models::Parameter{}, {}, {{"value", name}}});
  };
  if (first == First::batch_norm) norm("first");
  if (first == First::constants) {  // Keras' Rescaling(1 / 127.5, -1)
    const NodeId scale = constant("scale", 1 / 127.5), shift = constant("shift", -1);
    const NodeId scaled = graph.add({"scaled", models::Mul{}, {graph.output, scale}});
    graph.output = graph.add({"shifted", models::Add{}, {scaled, shift}});
  }
  std::int64_t channels = images.size(1);
  for (const std::string name : {"conv1", "conv2"}) {
    model.parameters.set(name + ".weight", at::randn({24, channels, 3, 3}) * 0.2);
    graph.output = graph.add({name,
                              models::Conv2d{.pads = {1, 1, 1, 1}},
                              {graph.output},
                              {{"weight", name + ".weight"}}});
    norm(name + ".norm");
    graph.output = graph.add({name + ".relu", models::Clip{}, {graph.output}});
    channels = 24;
  }
  return model;
}

// Other images than those that are tried.
at::Tensor images(std::int64_t channels = 3) {
  return generator::dead_leaves_images(500, 48, {channels, 32, 32}, 77);
}

// The first photographs of CIFAR-10.
at::Tensor photographs() {
  constexpr std::int64_t kImages = 500, kBytesOfImage = 3 * 32 * 32;
  std::ifstream file(test::shared_path("data/cifar10/data_batch_1.bin"), std::ios::binary);
  auto result = at::zeros({kImages, 3, 32, 32});
  std::vector<char> record(kBytesOfImage + 1);
  for (std::int64_t i = 0; i < kImages && file.read(record.data(), std::ssize(record)); ++i)
    for (std::int64_t k = 0; k < kBytesOfImage; ++k)
      result.data_ptr<float>()[i * kBytesOfImage + k] =
          static_cast<float>(static_cast<unsigned char>(record[static_cast<std::size_t>(k) + 1])) /
          255;
  return result;
}

struct Case {
  const Affine& pixels;
  const char* name;
};
// Without ImageNet's mean, pixels are about -128..127, which may be found instead.
const std::vector<Case> kCases{{kBytes, "0..255"},
                               {kShares, "0..1"},
                               {kSigned, "-1..1"},
                               {kHalf, "-0.5..0.5"},
                               {kImageNet, "ImageNet's mean and deviation"},
                               {kWithoutMean, "0..255 without ImageNet's mean"}};

TEST(PixelRange, IsThatOfTheImagesThatTheStatisticsAreOf) {
  for (const auto& [pixels, name] : kCases)
    for (const First first : {First::convolution, First::batch_norm}) {
      const auto found = infer_pixel_range(network_of(pixels(images()), first));
      EXPECT_EQ(found.name, name) << found.reason;
      EXPECT_NE(found.reason.find(first == First::batch_norm ? "'first'" : "'conv1.norm'"),
                std::string::npos)
          << found.reason;
    }
}

TEST(PixelRange, IsThatOfPhotographs) {
  ZSQ_SKIP_WITHOUT(test::shared_path("data/cifar10/data_batch_1.bin"));
  for (const auto& [pixels, name] : kCases) {
    const auto found = infer_pixel_range(network_of(pixels(photographs())));
    EXPECT_EQ(found.name, name) << found.reason;
  }
}

TEST(PixelRange, OfOneAndOfFourChannels) {
  for (const std::int64_t channels : {1, 4})
    for (const auto& [pixels, name] : kCases) {
      if (pixels.shift.size() > 1) continue;
      const auto found = infer_pixel_range(network_of(pixels(images(channels))));
      EXPECT_EQ(found.name, name) << channels << " channels: " << found.reason;
    }
}

TEST(PixelRange, IsToldByConstantsWhereThereIsNoBatchNorm) {
  const auto found = infer_pixel_range(network_of(kBytes(images()), First::constants, false));
  EXPECT_EQ(found.name, "0..255") << found.reason;
  EXPECT_NE(found.reason.find("0.007843 x -1"), std::string::npos) << found.reason;
  EXPECT_EQ(infer_pixel_range(network_of(kBytes(images()), First::constants)).name, "0..255");
}

TEST(PixelRange, IsNotKnownWhereNothingDecides) {
  const auto bare = infer_pixel_range(network_of(kBytes(images()), First::convolution, false));
  EXPECT_FALSE(bare.known());
  EXPECT_NE(bare.in_words().find("not known: "), std::string::npos) << bare.in_words();
  // 0 to 30, and images of one grey
  for (const auto& strange : {Affine{{30}, {0}}(images()), Affine{{0.01}, {40}}(images())}) {
    const auto found = infer_pixel_range(network_of(strange));
    EXPECT_FALSE(found.known()) << found.in_words();
  }
}

TEST(PixelRange, MeanPixelIsThatOfTraining) {
  const at::Tensor shown = kImageNet(images());
  const auto model = network_of(shown);
  const auto found = PixelStatistics(model).mean_pixel();
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(*found, shown.mean().item<double>(), 0.05);
  // after a ReLU it is no linear function any more
  auto later = network_of(shown);
  for (auto& node : later.graph.nodes)
    if (node.name == "conv1.norm") node.op = models::Clip{};
  EXPECT_FALSE(PixelStatistics(later).mean_pixel().has_value());
}

TEST(PixelRange, OfTheStatisticsOwnImagesHasNoLoss) {
  const at::Tensor shown = kSigned(images());
  EXPECT_NEAR(PixelStatistics(network_of(shown)).loss(shown), 0, 1e-4);
  // Twice the deviation and the mean; of a linear layer (ln 2)^2 and no more than 1/5 of z^2.
  EXPECT_GT(PixelStatistics(network_of(shown)).loss(shown * 2), 0.2);
}

eval::Preprocessing given(double low, double high) {
  return eval::resolve({.value_range = std::vector<double>{low, high},
                        .mean = std::vector<double>{0},
                        .std = std::vector<double>{1}},
                       {32, 32}, 3);
}

TEST(PixelRange, AWrongPreprocessingIsContradicted) {
  const auto model = network_of(kImageNet(images()));
  EXPECT_NE(contradiction(model, given(0, 255)).find("ImageNet's"), std::string::npos);
  EXPECT_NE(contradiction(model, given(0, 1)), "");
  EXPECT_EQ(contradiction(model, eval::resolve({.preset = "torchvision"}, {32, 32}, 3)), "");
  EXPECT_EQ(contradiction(model, eval::resolve({.preset = "cifar100"}, {32, 32}, 3)), "");
}

at::Tensor seen_at(const models::Model& model, const std::string& layer, const at::Tensor& images) {
  models::Graph front = model.graph;
  front.output = front.id_of(layer);
  front.nodes.resize(static_cast<std::size_t>(front.output) + 1);
  return models::execute(front, model.parameters, images);
}

// A classifier of 10 classes without BatchNorm that was made for pixels of `shares`: biases in
// proportion to what these give its channels, and logits of a trained one's size.
models::Model classifier_for(const Affine& pixels) {
  const at::Tensor shown = pixels(images());
  models::Model model = network_of(shown, First::convolution, false);
  models::Graph& graph = model.graph;
  const auto centre = [&](const std::string& layer) {
    model.parameters.set(layer + ".bias", seen_at(model, layer, shown).mean({0, 2, 3}).neg());
    graph.nodes[static_cast<std::size_t>(graph.id_of(layer))].params["bias"] = layer + ".bias";
  };
  centre("conv1");
  centre("conv2");
  graph.output = graph.add({"pool", models::GlobalAvgPool{}, {graph.output}});
  graph.output = graph.add({"flat", models::Flatten{}, {graph.output}});
  model.classes = 10;
  const at::Tensor features = models::execute(graph, model.parameters, shown);
  const at::Tensor deviation = features.std(0);
  model.parameters.set("fc.weight", at::randn({10, 24}) / deviation * 0.7);
  model.parameters.set("fc.bias", model.parameters.at("fc.weight").matmul(features.mean(0)).neg());
  graph.output = graph.add(
      {"fc", models::Linear{}, {graph.output}, {{"weight", "fc.weight"}, {"bias", "fc.bias"}}});
  return model;
}

// Without BatchNorm the predictions contradict what is off by far, and nothing confirms the rest.
TEST(PixelRange, PredictionsContradictPixelsThatAreFarOff) {
  const auto shares = classifier_for(kShares), bytes = classifier_for(kBytes);
  EXPECT_FALSE(can_tell_pixels(shares));
  EXPECT_TRUE(can_tell_pixels(network_of(kShares(images()))));
  EXPECT_TRUE(can_tell_pixels(network_of(kBytes(images()), First::constants, false)));
  EXPECT_EQ(contradiction(shares, given(0, 1)), "");
  EXPECT_EQ(contradiction(bytes, given(0, 255)), "");
  EXPECT_NE(contradiction(shares, given(0, 255)).find("certain of everything"), std::string::npos);
  EXPECT_NE(contradiction(bytes, given(0, 1)), "");
  auto unsure = shares;
  unsure.parameters = shares.parameters.clone();
  unsure.parameters.set("fc.weight", shares.parameters.at("fc.weight") * 1e-2);
  unsure.parameters.set("fc.bias", shares.parameters.at("fc.bias") * 1e-2);
  EXPECT_NE(contradiction(unsure, given(0, 1)).find("predicts the same"), std::string::npos);
  // of values there are no predictions to look at, but signs
  auto values = bytes;
  values.graph.signature.kind = models::OutputKind::values;
  EXPECT_EQ(contradiction(values, given(0, 255)), "");
  EXPECT_NE(contradiction(values, given(0, 1)).find("without a change of sign"), std::string::npos);
}

// ReLU6 bounds what pixels can do, so that no prediction is certain; it is saturated itself.
TEST(PixelRange, AFullReLU6ContradictsPixelsThatAreTooLarge) {
  auto model = classifier_for(kShares);
  const auto seen = seen_at(model, "conv1.relu", kShares(images()));
  const float ceiling = seen.max().item<float>() / 2;
  const auto relu = static_cast<std::size_t>(model.graph.id_of("conv1.relu"));
  model.graph.nodes[relu].op = models::Clip{0, ceiling};
  EXPECT_NEAR(share_at_ceiling(model, kShares(images())),
              static_cast<double>(seen.ge(ceiling).sum().item<std::int64_t>()) /
                  static_cast<double>(seen.gt(0).sum().item<std::int64_t>()),
              1e-9);
  model.graph.signature.kind = models::OutputKind::values;  // nothing to be certain of
  EXPECT_EQ(contradiction(model, given(0, 1)), "");
  EXPECT_NE(contradiction(model, given(0, 255)).find("its first ReLU6"), std::string::npos);
  EXPECT_TRUE(std::isnan(share_at_ceiling(classifier_for(kShares), kShares(images()))));
}

TEST(PixelRange, SpreadOfPredictionsIsOfTheirEntropy) {
  auto model = classifier_for(kShares);
  const at::Tensor shown = kShares(images());
  const auto spread = spread_of_predictions(model, shown);
  EXPECT_GT(spread.uncertainty, 0.05);
  EXPECT_GT(spread.information, 0.005);
  EXPECT_LE(spread.uncertainty + spread.information, 1 + 1e-9);
  model.parameters.set("fc.weight", at::zeros({10, 24}));
  model.parameters.set("fc.bias", at::zeros({10}));
  const auto even = spread_of_predictions(model, shown);
  EXPECT_NEAR(even.uncertainty, 1, 1e-6);
  EXPECT_NEAR(even.information, 0, 1e-6);
  model.classes = 2;
  EXPECT_TRUE(std::isnan(spread_of_predictions(model, shown).uncertainty));
}

TEST(PixelRange, OfTrainedNetworks) {
  for (const auto& [file, name] : {std::pair{"resnet20_cifar10", "ImageNet's mean and deviation"},
                                   {"efficientnet_lite0", "-1..1"}}) {
    const auto path = test::shared_path(std::string("models/") + file + ".onnx");
    ZSQ_SKIP_WITHOUT(path);
    const auto found = infer_pixel_range(models::load(path));
    EXPECT_EQ(found.name, name) << found.reason;
  }
}

}  // namespace
}  // namespace zsq::pipeline
