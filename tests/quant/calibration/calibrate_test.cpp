// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

QuantOptions options_for(ActivationRange range) {
  QuantOptions options;
  options.activations.range = range;
  options.activations.calibration_images = 10;
  return options;
}

// Batches of four images, the last of which is far brighter; counts how many were asked for.
struct Batches {
  int asked = 0;
  std::function<at::Tensor()> next() {
    return [this] {
      auto images = test::normal({4, 3, 12, 12}, 100 + asked);
      images[3].mul_(std::pow(10, asked++));
      return images;
    };
  }
};

float scale_of(const Student& student, const std::string& quantizer) {
  return student.parameters.at(quantizer + ".scale").item<float>();
}
float zero_point_of(const Student& student, const std::string& quantizer) {
  return student.parameters.at(quantizer + ".zero_point").item<float>();
}

// Ten images are two batches of four and half of the third; quantizers before a site do not act on
// it.
TEST(Calibrate, MinMaxOfTheUnquantizedTensors) {
  auto student = test::quantized(test::residual_network(), options_for(ActivationRange::min_max));
  models::Taps taps{{student.graph.id_of("stem.relu"), student.graph.id_of("b.bn")}, {}};
  std::vector<at::Tensor> images;
  Batches batches;
  for (int i = 0; i < 3; ++i) images.push_back(batches.next()());
  float top = 0, lo = 0, hi = 0;
  for (const auto& x : {images[0], images[1], images[2].narrow(0, 0, 2)}) {
    models::execute(student.graph, student.parameters, x, &taps);  // no activation scale yet
    top = std::max(top, taps.values[0].max().item<float>());
    lo = std::min(lo, taps.values[1].min().item<float>());
    hi = std::max(hi, taps.values[1].max().item<float>());
  }
  Batches again;
  calibrate(student, again.next());
  EXPECT_EQ(again.asked, 3);
  EXPECT_FLOAT_EQ(scale_of(student, "stem.relu.quantizer"), top / 255);
  EXPECT_EQ(zero_point_of(student, "stem.relu.quantizer"), 0);
  // The 4-bit quantizer after the 8-bit one sees the same tensor.
  EXPECT_FLOAT_EQ(scale_of(student, "stem.relu.quantizer4"), top / 15);
  EXPECT_FLOAT_EQ(scale_of(student, "b.bn.quantizer"), (hi - lo) / 255);
  EXPECT_EQ(zero_point_of(student, "b.bn.quantizer"), std::nearbyint(-lo / ((hi - lo) / 255)));
}

TEST(Calibrate, EverySiteGetsAGridAndTheSecondTimeTheSame) {
  for (const auto range :
       {ActivationRange::bn_statistics, ActivationRange::ema, ActivationRange::min_max,
        ActivationRange::percentile, ActivationRange::mse}) {
    auto student = test::quantized(test::residual_network(), options_for(range));
    Batches first, second;
    calibrate(student, first.next());
    EXPECT_EQ(first.asked == 0, range == ActivationRange::bn_statistics);
    const auto before = student.parameters.clone();
    calibrate(student, second.next());
    for (auto id : activation_sites(student.graph)) {
      const auto* op = activation_quantizer(student.graph[id]);
      ASSERT_TRUE(before.contains(op->scale_name())) << student.graph[id].name;
      EXPECT_TRUE(at::equal(before.at(op->scale_name()), student.parameters.at(op->scale_name())));
    }
    const auto x = test::normal({2, 3, 12, 12}, 9);
    EXPECT_TRUE(
        models::execute(student.graph, student.parameters, x).isfinite().all().item<bool>());
  }
}

// Mean power of a grid's error over channels N(mean, deviation^2) that are clipped: a sum in
// double.
double error_of(double scale, double zero_point, int qmax, double power,
                const std::vector<std::pair<double, double>>& channels, double lo, double hi) {
  double error = 0;
  for (const auto& [mean, deviation] : channels)
    for (double z = -6; z <= 6; z += 1e-2) {
      const double x = std::clamp(mean + deviation * z, lo, hi);
      const double q = std::clamp<double>(std::nearbyint(x / scale) + zero_point, 0, qmax);
      error += std::exp(-z * z / 2) * std::pow(std::abs((q - zero_point) * scale - x), power);
    }
  return error;
}

TEST(Calibrate, BatchNormTellsTheRangeWithoutImages) {
  test::NetworkBuilder net;
  auto x = net.op("relu6", models::Clip{0, 6}, {net.conv_bn("stem", net.input(), 3, 2)});
  auto model = net.finish(net.conv("last", net.conv_bn("a", x, 2, 2), 2, 2));
  model.parameters.at("stem.bn.gamma").fill_(2);
  model.parameters.at("stem.bn.beta").fill_(-1);
  model.parameters.at("a.bn.gamma")[0] = -0.5;
  model.parameters.at("a.bn.gamma")[1] = 0.25;
  model.parameters.at("a.bn.beta")[0] = -1;
  model.parameters.at("a.bn.beta")[1] = 3;
  auto options = options_for(ActivationRange::bn_statistics);
  options.image_lo = -2;
  options.image_hi = 3.1;
  options.activations.num_bits = 4;
  auto student = test::quantized(model, options);
  Batches batches;
  calibrate(student, batches.next());
  EXPECT_EQ(batches.asked, 0);
  EXPECT_FLOAT_EQ(scale_of(student, "input.quantizer"), 5.1f / 255);
  EXPECT_EQ(zero_point_of(student, "input.quantizer"), 100);

  const auto expect_best = [&](const std::string& quantizer, int qmax, double power, double lo,
                               double hi, const std::vector<std::pair<double, double>>& channels,
                               double end) {
    double best = 1e9;
    for (double top = 0.5; top < 7; top += 0.05)
      for (double bottom = 0; bottom >= end; bottom -= 0.05) {
        const double scale = (top - bottom) / qmax;
        best = std::min(
            best, error_of(scale, std::nearbyint(-bottom / scale), qmax, power, channels, lo, hi));
      }
    EXPECT_LT(error_of(scale_of(student, quantizer), zero_point_of(student, quantizer), qmax, power,
                       channels, lo, hi),
              1.1 * best)
        << quantizer;
  };
  expect_best("relu6.quantizer", 15, 4, 0, 6, {{-1, 2}}, 0);
  expect_best("a.bn.quantizer", 255, 8, -100, 100, {{-1, 0.5}, {3, 0.25}}, -5);

  options.image_lo = options.image_hi = 0;  // not known
  student = test::quantized(model, options);
  calibrate(student, batches.next());
  expect_best("input.quantizer", 255, 2, -100, 100, {{0, 1}}, -6);

  options.activations.num_bits = 8;  // as if deviations were 1.2 times as large
  student = test::quantized(model, options);
  calibrate(student, batches.next());
  expect_best("a.bn.quantizer", 255, 8, -100, 100, {{-1, 0.6}, {3, 0.3}}, -6);
  EXPECT_LE(scale_of(student, "relu6.quantizer"), 6.0F / 255);  // no value is larger
}

TEST(Calibrate, SaysWhenImagesRunOut) {
  auto student = test::quantized(test::residual_network(), options_for(ActivationRange::mse));
  EXPECT_THROW(calibrate(student, [] { return at::Tensor(); }), Error);
}

TEST(Calibrate, SaysWhichTensorIsNotFinite) {
  auto model = test::residual_network();
  model.parameters.at("a.bn.beta").fill_(INFINITY);
  auto student = test::quantized(model, options_for(ActivationRange::mse));
  Batches batches;
  try {
    calibrate(student, batches.next());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::numeric_failure);
    EXPECT_NE(std::string(error.what()).find("a.relu.quantizer"), std::string::npos)
        << error.what();
  }
}

// TensorRT knows no zero points: 8 bits are signed, fewer stay what they are.
TEST(Calibrate, TensorrtHasSymmetricEightBits) {
  QuantOptions options = options_for(ActivationRange::min_max);
  options.weights.saturation = Saturation::allow;  // the same weights for both
  const auto asymmetric = [&] {
    Student student = test::quantized(test::residual_network(), options);
    Batches batches;
    calibrate(student, batches.next());
    return student;
  };
  const Student before = asymmetric();
  options.target = Target::tensorrt;
  const Student student = asymmetric();
  int eight = 0;
  for (const auto id : activation_sites(student.graph)) {
    const QuantizerSpec& spec = activation_quantizer(student.graph[id])->spec();
    const std::string& name = activation_quantizer(student.graph[id])->name();
    const float scale = scale_of(before, name), zero = zero_point_of(before, name);
    if (spec.num_bits < 8) {
      EXPECT_EQ(scale_of(student, name), scale);
      EXPECT_EQ(zero_point_of(student, name), zero);
      continue;
    }
    ++eight;
    EXPECT_EQ(spec.qmin, -128);
    EXPECT_EQ(spec.qmax, 127);
    EXPECT_EQ(zero_point_of(student, name), 0);
    const float least = -zero * scale, most = (255 - zero) * scale;
    EXPECT_NEAR(scale_of(student, name), std::max(-least / 128, most / 127), 0.6F * scale / 127);
  }
  EXPECT_GE(eight, 3);
}

}  // namespace
}  // namespace zsq::quant
