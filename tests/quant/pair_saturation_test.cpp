// SPDX-License-Identifier: Apache-2.0
// Against the definition: a loop that adds two products at a time in 16 bits.
#include "quant/pair_saturation.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/execute.h"
#include "quant/qdq_chain.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

constexpr float kStep = 0.02f, kWeightStep = 0.01f;
constexpr int kZero = 7;

int add_pairs(const std::vector<int>& a, const std::vector<int>& w) {
  int sum = 0;
  for (std::size_t k = 0; k < a.size(); k += 2) {
    int two = a[k] * w[k];
    if (k + 1 < a.size()) two += a[k + 1] * w[k + 1];
    sum += std::clamp(two, -32768, 32767);
  }
  return sum;
}

// The layer's result in codes of products, without bias. x u8 codes [C, H, W], w [out, in, kh, kw].
at::Tensor by_definition(const at::Tensor& x, const at::Tensor& w, const models::Conv2d& conv) {
  const auto [top, left, bottom, right] = conv.pads;
  const std::int64_t kh = w.size(2), kw = w.size(3), inputs = w.size(1);
  const std::int64_t h =
      (x.size(1) + top + bottom - conv.dilation[0] * (kh - 1) - 1) / conv.stride[0] + 1;
  const std::int64_t v =
      (x.size(2) + left + right - conv.dilation[1] * (kw - 1) - 1) / conv.stride[1] + 1;
  const std::int64_t per_group = w.size(0) / conv.groups;
  auto y = at::zeros({w.size(0), h, v});
  for (std::int64_t o = 0; o < w.size(0); ++o)
    for (std::int64_t r = 0; r < h; ++r)
      for (std::int64_t c = 0; c < v; ++c) {
        std::vector<int> codes, weights;
        int weight_sum = 0;
        for (std::int64_t i = 0; i < kh; ++i)
          for (std::int64_t j = 0; j < kw; ++j)
            for (std::int64_t k = 0; k < inputs; ++k) {
              const std::int64_t row = r * conv.stride[0] - top + i * conv.dilation[0];
              const std::int64_t column = c * conv.stride[1] - left + j * conv.dilation[1];
              const bool inside = row >= 0 && row < x.size(1) && column >= 0 && column < x.size(2);
              const std::int64_t channel = o / per_group * inputs + k;
              codes.push_back(inside ? x[channel][row][column].item<int>() : kZero);
              weights.push_back(w[o][k][i][j].item<int>());
              weight_sum += weights.back();
            }
        y[o][r][c] = add_pairs(codes, weights) - kZero * weight_sum;
      }
  return y;
}

struct Layer {
  models::Model model;
  Int8Scales scales;
  at::Tensor codes;
};

// input -> quantizer -> layer
template <class Op>
Layer layer(std::array<std::int64_t, 3> image, std::vector<std::int64_t> shape, Op op) {
  Layer result;
  auto& graph = result.model.graph;
  graph.input_shape = image;
  graph.input = graph.add({"input", models::Input{}, {}});
  auto quantizer =
      quantize_chain_factory()("input.quantizer", {kStep, kZero, 0, 255}, result.model.parameters);
  graph.add({"input.quantizer", models::Custom{quantizer}, {0}});
  models::NodeId x = 1;
  if (std::is_same_v<Op, models::Linear>) x = graph.add({"flat", models::Flatten{}, {1}});
  if (std::is_same_v<Op, models::Linear>) {
    // As exporters write it: the same quantizer again after the reshape.
    x = graph.add({"flat.quantizer", models::Custom{quantizer}, {x}});
  }
  result.codes = test::normal(shape, 5, 90).round().clamp(-127, 127);
  result.model.parameters.set("layer.weight", result.codes.mul(kWeightStep));
  result.model.parameters.set("layer.bias", test::normal({shape[0]}, 6));
  graph.output =
      graph.add({"layer", op, {x}, {{"weight", "layer.weight"}, {"bias", "layer.bias"}}});
  result.scales["layer.weight"] = at::full({shape[0]}, kWeightStep, at::kFloat);
  return result;
}

at::Tensor codes_of_image(const std::array<std::int64_t, 3>& shape) {
  return test::normal({shape[0], shape[1], shape[2]}, 8, 120).abs().add(90).round().clamp(0, 255);
}

void expect_as_defined(const Layer& given, const at::Tensor& codes, const at::Tensor& expected) {
  const auto network =
      with_pair_saturation(given.model.graph, given.model.parameters, given.scales);
  EXPECT_EQ(network.layers, 1);
  EXPECT_GT(network.channels, 0);
  const auto x = codes.sub(kZero).mul(kStep).unsqueeze(0);
  const auto got = models::execute(network.graph, given.model.parameters, x)[0];
  const auto exact = models::execute(given.model.graph, given.model.parameters, x)[0];
  const double unit = static_cast<double>(kStep) * kWeightStep;
  EXPECT_LT(got.sub(expected).abs().max().item<double>(), 0.6 * unit)
      << "in units of a product: " << got.sub(expected).abs().max().item<double>() / unit;
  EXPECT_GT(exact.sub(expected).abs().max().item<double>(), 1000 * unit);
}

TEST(PairSaturation, OfConvolutionsIsThatOfTheDefinition) {
  const models::Conv2d plain{{1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  const models::Conv2d strided{{2, 1}, {0, 1, 2, 1}, {1, 2}, 1};
  const models::Conv2d grouped{{1, 1}, {1, 1, 1, 1}, {1, 1}, 2};
  const std::array<std::int64_t, 3> odd{3, 7, 8}, even{6, 6, 7};
  const auto check = [](const std::array<std::int64_t, 3>& image, std::vector<std::int64_t> shape,
                        const models::Conv2d& conv) {
    const auto given = layer(image, shape, conv);
    const auto codes = codes_of_image(image);
    const auto products = by_definition(codes, given.codes, conv);
    const auto bias = given.model.parameters.at("layer.bias").view({-1, 1, 1});
    expect_as_defined(given, codes, products.mul(kStep * kWeightStep).add(bias));
  };
  check(odd, {4, 3, 3, 3}, plain);
  check(odd, {4, 3, 3, 3}, strided);
  check(even, {4, 3, 3, 3}, grouped);
  check(even, {4, 6, 1, 1}, {});
}

TEST(PairSaturation, OfLinearLayersIsThatOfTheDefinition) {
  const std::array<std::int64_t, 3> image{5, 1, 3};
  const auto given = layer(image, {6, 15}, models::Linear{});
  const auto codes = codes_of_image(image);
  auto expected = by_definition(codes.view({15, 1, 1}), given.codes.view({6, 15, 1, 1}), {})
                      .flatten()
                      .mul(kStep * kWeightStep)
                      .add(given.model.parameters.at("layer.bias"));
  expect_as_defined(given, codes, expected);
}

TEST(PairSaturation, NetworksWithinTheBoundStayAsTheyAre) {
  auto given = layer({4, 5, 5}, {4, 4, 3, 3}, models::Conv2d{});
  given.model.parameters.at("layer.weight") = given.codes.clamp(-64, 64).mul(kWeightStep);
  const auto network =
      with_pair_saturation(given.model.graph, given.model.parameters, given.scales);
  EXPECT_EQ(network.layers, 0);
  EXPECT_EQ(network.graph.nodes.size(), given.model.graph.nodes.size());
  // One code more and 255 * 129 > 32767.
  auto& weight = given.model.parameters.at("layer.weight");
  weight = weight.abs();
  weight[0][0][0][0] = 65 * kWeightStep;
  weight[0][1][0][0] = 64 * kWeightStep;
  EXPECT_EQ(with_pair_saturation(given.model.graph, given.model.parameters, given.scales).channels,
            1);
}

TEST(PairSaturation, DepthwiseAndUnknownWeightsDoNotSaturate) {
  auto given = layer({4, 5, 5}, {4, 1, 3, 3}, models::Conv2d{{1, 1}, {}, {1, 1}, 4});
  EXPECT_EQ(with_pair_saturation(given.model.graph, given.model.parameters, given.scales).layers,
            0);
  given = layer({4, 5, 5}, {4, 4, 3, 3}, models::Conv2d{});
  EXPECT_EQ(with_pair_saturation(given.model.graph, given.model.parameters, {}).layers, 0);
}

}  // namespace
}  // namespace zsq::quant
