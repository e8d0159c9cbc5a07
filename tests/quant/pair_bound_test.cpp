// SPDX-License-Identifier: Apache-2.0
// Pairs are found here by plain loops over kernel rows, kernel columns and channels.
#include "quant/pair_bound.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "quant/calibration/ranges.h"
#include "quant/fold_batch_norm.h"
#include "quant/pair_excess.h"
#include "quant/rounding/adaround.h"
#include "quant/rounding/gptq.h"
#include "quant/rounding/soft_rounding.h"
#include "quant/rounding/squant.h"
#include "tests/quant/rounding/one_layer.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::pair_bound_test {
namespace {

constexpr std::int64_t kBound = 128;  // 255 * 128 = 32640 <= 32767 < 255 * 129

QuantizerSpec bounded_spec() {
  QuantizerSpec spec = weight_spec(8, true, Mode::deploy);
  spec.pair_bound = kBound;
  return spec;
}

// The codes of a row in the order in which runtimes add products.
std::vector<int> in_order(const at::Tensor& row) {
  std::vector<int> codes;
  if (row.dim() < 3) {
    for (std::int64_t i = 0; i < row.numel(); ++i) codes.push_back(row[i].item<int>());
    return codes;
  }
  for (std::int64_t i = 0; i < row.size(1); ++i)
    for (std::int64_t j = 0; j < row.size(2); ++j)
      for (std::int64_t c = 0; c < row.size(0); ++c) codes.push_back(row[c][i][j].item<int>());
  return codes;
}

// The largest |sum| of two neighbours of one sign.
int largest_sum(const at::Tensor& codes) {
  int largest = 0;
  for (std::int64_t r = 0; r < codes.size(0); ++r) {
    const auto row = in_order(codes[r]);
    for (std::size_t k = 0; k + 1 < row.size(); k += 2)
      if ((row[k] < 0) == (row[k + 1] < 0))
        largest = std::max(largest, std::abs(row[k] + row[k + 1]));
  }
  return largest;
}

cuda_kernels::Grid unit_grid(std::int64_t channels, double scale = 1) {
  return {at::full({channels}, scale, at::kFloat), at::zeros({channels})};
}

at::Tensor codes_on(const at::Tensor& weight, const cuda_kernels::Grid& grid) {
  return cuda_kernels::quantize(weight, grid.scale, grid.zero_point, -127, 127);
}

TEST(PairBound, IsWhatSixteenBitsHold) {
  EXPECT_EQ(pair_bound(255), kBound);
  EXPECT_GE(pair_bound(127), 2 * 127);
}

TEST(PairBound, NoPairOfAnyShapeIsBeyondIt) {
  const std::vector<std::vector<std::int64_t>> shapes{
      {4, 3, 3, 3}, {4, 8, 1, 1}, {5, 7}, {6, 1, 5, 5}};
  for (const auto& shape : shapes) {
    const auto weight = test::normal(shape, 3, 90);
    const auto kept = keep_pairs(weight, unit_grid(shape[0]), bounded_spec());
    const auto before = codes_on(weight, unit_grid(shape[0])),
               after = codes_on(kept, unit_grid(shape[0]));
    EXPECT_GT(largest_sum(before), kBound);
    EXPECT_LE(largest_sum(after), kBound);
    EXPECT_GE(largest_sum(after), kBound - 1);
    EXPECT_TRUE(keep_pairs(kept, unit_grid(shape[0]), bounded_spec()).equal(kept));
    EXPECT_FALSE(breaks_pair_bound(after, kBound));
    EXPECT_TRUE(breaks_pair_bound(before, kBound));
  }
}

// With zero points, halves that round to even, and one pair alone that is beyond the bound.
TEST(PairBound, IsExceededWhereCodesAre) {
  const std::vector<std::vector<std::int64_t>> shapes{{5, 3, 3, 3}, {5, 9, 1, 1}, {5, 300}, {5, 1}};
  int exceeded = 0;
  for (const auto& shape : shapes)
    for (const double size : {20, 28, 36, 44, 60}) {
      auto grid = unit_grid(5, 0.5);
      grid.zero_point.fill_(3);
      const auto weight =
          (test::normal(shape, static_cast<std::uint64_t>(size), size) * 4).round() / 8;
      const auto codes = cuda_kernels::quantize(weight, grid.scale, grid.zero_point, -127, 127) - 3;
      const bool beyond = largest_sum(codes) > kBound;
      EXPECT_EQ(may_exceed_pair_bound(weight, grid, bounded_spec()), beyond) << size;
      exceeded += beyond;
    }
  EXPECT_GT(exceeded, 3);
  EXPECT_LT(exceeded, 17);
}

TEST(PairBound, GivesWayToTheNearestCodesThatAreAllowed) {
  for (int seed = 0; seed < 200; ++seed) {
    const auto weight = test::normal({1, 2}, static_cast<std::uint64_t>(seed), 70).clamp(-127, 127);
    const auto codes = codes_on(keep_pairs(weight, unit_grid(1), bounded_spec()), unit_grid(1));
    const float x = weight[0][0].item<float>(), y = weight[0][1].item<float>();
    const auto error = [&](int a, int b) { return (a - x) * (a - x) + (b - y) * (b - y); };
    float least = INFINITY;
    for (int a = -127; a <= 127; ++a)
      for (int b = -127; b <= 127; ++b)
        if ((a < 0) != (b < 0) || std::abs(a + b) <= kBound) least = std::min(least, error(a, b));
    EXPECT_LE(error(codes[0][0].item<int>(), codes[0][1].item<int>()), least + 1e-2) << weight;
  }
}

TEST(PairBound, OfOtherSignsAndALastOneAloneMayBeAnything) {
  const auto weight = at::tensor({127.f, -127.f, -127.f, 127.f, 127.f}).view({1, 5});
  EXPECT_TRUE(keep_pairs(weight, unit_grid(1), bounded_spec()).equal(weight));
}

TEST(PairBound, GradientsPass) {
  auto weight = at::tensor({100.f, 100.f}).view({1, 2}).requires_grad_(true);
  keep_pairs(weight, unit_grid(1), bounded_spec()).sum().backward();
  EXPECT_TRUE(weight.grad().eq(1).all().item<bool>());
}

TEST(PairBound, AnyCodesWithinTheLimitsKeepIt) {
  const auto weight = test::normal({6, 5, 3, 3}, 4, 60);
  const auto grid = unit_grid(6);
  const auto limits = code_limits(weight, grid, bounded_spec());
  EXPECT_LE(largest_sum(limits.highest.to(at::kInt)), kBound);
  EXPECT_LE(largest_sum(limits.lowest.to(at::kInt)), kBound);
  const auto codes = codes_on(keep_pairs(weight, grid, bounded_spec()), grid);
  EXPECT_TRUE(codes.le(limits.highest.add(1)).all().item<bool>());
  EXPECT_TRUE(codes.ge(limits.lowest.sub(1)).all().item<bool>());
  EXPECT_LE(limits.highest.max().item<float>(), 127);
  // Small neighbours have room on both sides.
  const auto small = code_limits(test::normal({1, 2, 1, 1}, 1), unit_grid(1), bounded_spec());
  EXPECT_GE(small.highest.min().item<float>(), 60);
  EXPECT_LE(small.lowest.max().item<float>(), -60);
}

TEST(PairBound, RangesAreNoWorseThanHalvedOrCutOffOnes) {
  const auto weight = test::normal({16, 8, 3, 3}, 9).abs().add(test::normal({16, 1, 1, 1}, 2));
  const auto spec = bounded_spec();
  const auto error = [&](const cuda_kernels::Grid& grid) {
    const auto scale = grid.scale.view({-1, 1, 1, 1});
    const auto kept = keep_pairs(weight, grid, spec);
    return codes_on(kept, grid).mul(scale).sub(weight).square().sum().item<double>();
  };
  auto plain = spec;
  plain.pair_bound = 0;
  auto cut_off = weight_grid(weight, plain, true, WeightRange::mse), halved = cut_off;
  halved.scale = halved.scale.mul(2);
  for (const auto rule : {WeightRange::mse, WeightRange::min_max}) {
    const double ours = error(weight_grid(weight, spec, true, rule));
    EXPECT_LT(ours, 1.02 * error(halved));
    EXPECT_LT(ours, 1.02 * error(cut_off));
  }
}

// With weights of one sign and far beyond the bound, every method is tempted to leave it.
TEST(PairBound, EveryRoundingMethodKeepsIt) {
  const auto spec = bounded_spec();
  const auto x = smooth_images(6, 5);
  const auto weight = test::normal({12, 6, 3, 3}, 7).abs().add(0.5);
  for (const double narrow : {1.0, 0.6}) {
    auto grid = weight_grid(weight, spec, true, WeightRange::mse);
    grid.scale = grid.scale.mul(narrow);
    const auto moments = moments_of(1, x, x, weight);
    const auto sum_of = [&](const at::Tensor& latent, const at::Tensor& scale) {
      return largest_sum(cuda_kernels::quantize(latent, scale, grid.zero_point, -127, 127));
    };
    GptqOptions options;
    options.damping = 1e-3;
    const auto gptq = round_layer_by_gptq(weight, moments, grid, spec, options);
    EXPECT_LE(sum_of(gptq.latent, gptq.scale), kBound);
    const auto adaround = round_layer_by_adaround(weight, moments, grid, spec, options, {});
    EXPECT_LE(sum_of(adaround.latent, adaround.scale), kBound);
    EXPECT_LE(sum_of(squant(weight, grid, spec, false), grid.scale), kBound);

    const WeightQuantizer quantizer("w", spec, true, false);
    models::ParameterStore parameters;
    parameters.set(quantizer.scale_name(), grid.scale);
    parameters.set(quantizer.zero_point_name(), grid.zero_point);
    const SoftRounding soft(quantizer, weight, parameters);
    {
      const at::NoGradGuard no_grad;
      soft.logits().fill_(9);  // all to the level above
    }
    EXPECT_LE(sum_of(soft.decided(parameters), grid.scale), kBound);
    EXPECT_LE(sum_of(quantizer.forward({weight}, parameters), grid.scale), kBound);
  }
}

int largest_sum_of_student(const QuantOptions& options, const models::Model& teacher) {
  const Student student = test::quantized(teacher, options);
  int largest = 0;
  for (const auto& site : weight_sites(student)) {
    const auto& weight = student.parameters.at(site.parameter);
    const auto* conv = models::get_if<models::Conv2d>(student.graph[site.layer]);
    if (conv && conv->groups == weight.size(0) && conv->groups > 1) continue;
    largest = std::max(largest, largest_sum(steps_of(integer_weights(student, site))));
  }
  return largest;
}

TEST(PairBound, HoldsForTheTargetsThatSaturateUnlessTheyMay) {
  test::NetworkBuilder b;
  auto x = b.conv_bn_relu("a", b.input(), 3, 8);
  x = b.conv_bn_relu("b", x, 8, 8, 3, 8);
  x = b.conv_bn_relu("c", x, 8, 8);
  x = b.op("pool", models::GlobalAvgPool{}, {x});
  auto model = b.finish(b.linear("fc", b.op("flat", models::Flatten{}, {x}), 8, 10), 10);
  for (const char* layer : {"a.weight", "c.weight", "fc.weight"})
    model.parameters.at(layer) = model.parameters.at(layer).abs();
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = 8;
  for (const Target target :
       {Target::onnxruntime, Target::openvino, Target::generic, Target::qcdq}) {
    options.target = target;
    EXPECT_LE(largest_sum_of_student(options, model), kBound);
    EXPECT_GE(largest_sum_of_student(options, model), kBound - 4);
  }
  options.weights.saturation = Saturation::allow;
  EXPECT_GT(largest_sum_of_student(options, model), 180);
  options.weights.saturation = Saturation::halve;
  EXPECT_LE(largest_sum_of_student(options, model), kBound);
  options.weights.saturation = Saturation::avoid;
  options.target = Target::tflite;
  EXPECT_GT(largest_sum_of_student(options, model), 180);
}

}  // namespace
}  // namespace zsq::quant::pair_bound_test
