// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/inundation.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/round.h>
#include <ATen/ops/zeros.h>

#include "tests/cuda_kernels/inundation_layer.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

TEST(CrossingRatios, HandWorked) {
  // Step 1, codes -8..7: thresholds at the halves. 0.2 moving down reaches -0.5 after 0.7.
  const at::Tensor w = values({0.2f, 0.2f, 2.75f, 0.2f});
  const at::Tensor step = values({0.1f, -0.1f, 0.5f, 0});
  const at::Tensor r = crossing_ratios(w, step, scalar(1), scalar(0), -8, 7);
  EXPECT_TRUE(at::allclose(r, values({7, 3, 0.5f, kInf}), 1e-6));
}

TEST(CrossingRatios, OnAThresholdAndAtTheEndsOfTheRange) {
  // 0.5 has code 0 (even) and 1.5 code 2: upwards from 0.5 the distance is 0, downwards a full
  // step.
  const at::Tensor w =
      values({0.5f, 0.5f, 1.5f, 1.5f, 7.2f, 9.0f, 9.0f, -8.4f, -20.0f, -20.0f, kNan});
  const at::Tensor d = values({-1, 1, 1, -1, -1, -1, 1, 1, 1, -1, 1});
  const at::Tensor r = crossing_ratios(w, d, scalar(1), scalar(0), -8, 7);
  EXPECT_TRUE(same_bits(r, values({0, 1, 0, 1, kInf, kInf, 2.5f, kInf, kInf, 12.5f, kInf})));
}

TEST(CrossingRatios, MatchTrialInDouble) {
  const Layer layer = make_layer({6, 4, 3, 3});
  const at::Tensor step = layer.intended();
  const at::Tensor r = crossing_ratios(layer.weight, step, layer.scale, layer.zero_point, -8, 7);
  const auto truth =
      reference::ratios_by_trial(layer.weight, step, layer.scale, layer.zero_point, -8, 7);
  const at::Tensor resolution = layer.weight.abs().max() * 2e-7 / step.abs();
  for (std::int64_t i = 0; i < r.numel(); ++i) {
    const double got = r.view({-1})[i].item<float>();
    if (std::isinf(truth[i])) {
      EXPECT_TRUE(std::isinf(got));
    } else {
      EXPECT_NEAR(got, truth[i], 1e-6 * truth[i] + resolution.view({-1})[i].item<float>());
    }
  }
  const at::Tensor last = layer.weight.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor same = crossing_ratios(last, step, layer.scale, layer.zero_point, -8, 7);
  EXPECT_EQ(same.strides(), last.strides());
  EXPECT_TRUE(same_bits(same, r));
}

TEST(Inundate, MatchesTheSortOfAllRatios) {
  for (const double rate : {1e-4, 0.01, 0.3}) {
    Layer layer = make_layer({8, 6, 3, 3});
    layer.args.crossing_rate = rate;
    const auto m = static_cast<std::int64_t>(std::ceil(rate * 432));
    const auto [k, resolution] = layer.wanted_factor(m);
    const at::Tensor w = layer.weight.clone(), before = layer.codes();
    const auto expected =
        reference::nesterov_step(layer.velocity, layer.gradient, layer.args.lr, 0.9);
    const Outcome result = layer.step();
    EXPECT_FALSE(result.skipped);
    EXPECT_NEAR(result.k, k, resolution);
    EXPECT_EQ(result.crossings, m);
    EXPECT_EQ((layer.codes() != before).sum().item<std::int64_t>(), m);
    EXPECT_TRUE(at::allclose(layer.velocity, expected.velocity, 1e-6, 1e-12));
    EXPECT_TRUE(at::allclose(w - layer.weight, expected.step * result.k, 1e-4, 1e-7));
  }
}

TEST(Inundate, AtLeastTheWantedCodesReallyChange) {
  // Steps down to far below the resolution of the weights, weights on and beside thresholds, grids
  // of every size: what is promised in real numbers has to hold in float.
  for (int trial = 0; trial < 300; ++trial) {
    Layer layer = make_layer({4, 250});
    layer.args = {.lr = std::pow(10.0, -(trial % 9)),
                  .crossing_rate = 0.001 * (1 + trial % 50),
                  .k_max = 1e30,
                  .c_max = kInf};
    layer.scale *= std::pow(10.0, trial % 5 - 2);
    const at::Tensor scale = layer.scale.reshape({4, 1});
    if (trial % 2) {  // on a threshold, or a float beside it
      layer.weight = (at::round(layer.weight / scale) + 0.5) * scale;
      const at::Tensor beside = layer.weight * (1 + 6e-8 * at::randint(-2, 3, {4, 250}));
      layer.weight = beside.to(at::kFloat).contiguous();
    }
    const at::Tensor before = layer.codes();
    const Outcome result = layer.step();
    const auto changed = (layer.codes() != before).sum().item<std::int64_t>();
    EXPECT_EQ(changed, result.crossings);
    if (result.k >= layer.args.k_max) continue;
    EXPECT_GE(changed, std::ceil(layer.args.crossing_rate * 1000 * (1 - 1e-12))) << trial;
  }
}

TEST(Inundate, FactorIsAtLeastOneAndThenTheStepIsThatOfNesterov) {
  Layer layer = make_layer({5, 40});
  layer.args.lr = 100;
  const auto expected = reference::nesterov_step(layer.velocity, layer.gradient, 100, 0.9);
  const at::Tensor w = layer.weight.clone();
  const Outcome result = layer.step();
  EXPECT_EQ(result.k, 1);
  EXPECT_GT(result.crossings, 2);
  EXPECT_TRUE(at::allclose(layer.weight, w - expected.step, 1e-6, 1e-7));
}

TEST(Inundate, CountsWhatTheStepItselfMovesPastTheWantedNumber) {
  // k = 1, although the wanted ratios are far below: many more codes change than were looked for.
  Layer layer = make_layer({5, 4000});
  layer.args.crossing_rate = 1e-3;
  layer.args.lr = 10;
  const at::Tensor before = layer.codes();
  const Outcome result = layer.step();
  EXPECT_EQ(result.k, 1);
  EXPECT_GT(result.crossings, 100);  // 20 were asked for
  EXPECT_EQ(result.crossings, (layer.codes() != before).sum().item<std::int64_t>());
}

TEST(Inundate, FactorIsLimited) {
  Layer layer = make_layer({5, 40});
  layer.args.k_max = 3;
  layer.args.lr = 1e-6;
  const at::Tensor w = layer.weight.clone(), step = layer.intended();
  EXPECT_EQ(layer.step().k, 3);
  EXPECT_TRUE(same_bits(layer.weight, w - 3 * step) ||
              at::allclose(layer.weight, w - 3 * step, 1e-6, 1e-8));
}

TEST(Inundate, MovesAreClippedToStepsOfTheGrid) {
  Layer layer = make_layer({5, 40});
  layer.args.lr = 1e6;
  layer.args.c_max = 0.5;
  const at::Tensor w = layer.weight.clone();
  layer.step();
  const at::Tensor moved = (layer.weight - w).abs() / layer.scale.reshape({5, 1});
  EXPECT_TRUE(at::allclose(moved, at::full_like(moved, 0.5), 1e-4, 1e-4));
}

TEST(Inundate, NonFiniteGradientsLeaveEverythingUntouched) {
  for (const float bad : {kNan, kInf, -kInf}) {
    Layer layer = make_layer({3, 50000});
    layer.gradient[2][49999] = bad;
    const at::Tensor w = layer.weight.clone(), v = layer.velocity.clone();
    const Outcome result = layer.step();
    EXPECT_TRUE(result.skipped);
    EXPECT_EQ(result.crossings, 0);
    EXPECT_TRUE(same_bits(layer.weight, w));
    EXPECT_TRUE(same_bits(layer.velocity, v));
  }
}

TEST(Inundate, NoStepNoCrossing) {
  Layer layer = make_layer({3, 20});
  layer.gradient.zero_();
  layer.velocity.zero_();
  const at::Tensor w = layer.weight.clone();
  const Outcome result = layer.step();
  EXPECT_FALSE(result.skipped);
  EXPECT_EQ(result.k, layer.args.k_max);
  EXPECT_EQ(result.crossings, 0);
  EXPECT_TRUE(same_bits(layer.weight, w));
}

TEST(Inundate, WeightsAtTheEndOfTheRangeDoNotCount) {
  // All but one weight are at their end and move outwards; the one that can cross decides k.
  Layer layer{{at::full({1, 10}, 7.0f), at::zeros({1, 10}), at::full({1, 10}, -1.0f), at::ones({1}),
               at::zeros({1}), -8, 7}};
  layer.weight[0][4] = 0.0f;
  layer.args = {.lr = 0.01, .momentum = 0, .crossing_rate = 0.1, .k_max = 1e4, .c_max = 1};
  Outcome result = layer.step();
  EXPECT_NEAR(result.k, 50, 0.001);  // 0.5 / 0.01
  EXPECT_EQ(result.crossings, 1);
  layer.args.crossing_rate = 0.2;  // two are wanted, one can
  result = layer.step();
  EXPECT_EQ(result.k, 1e4);
}

TEST(Inundate, LargeLayersAndMemoryFormats) {
  Layer layer = make_layer({64, 300, 3, 3});
  Layer last = layer;
  for (at::Tensor* t : {&last.weight, &last.velocity})
    *t = t->contiguous(at::MemoryFormat::ChannelsLast);
  layer.weight = layer.weight.clone();
  layer.velocity = layer.velocity.clone();
  layer.args.crossing_rate = last.args.crossing_rate = 1e-3;
  const std::int64_t wanted = 173;  // ceil(1e-3 * 172800)
  const Outcome a = layer.step(), b = last.step();
  EXPECT_EQ(a.k, b.k);
  EXPECT_EQ(a.crossings, b.crossings);
  EXPECT_GE(a.crossings, wanted);
  EXPECT_LE(a.crossings, wanted + 3);  // ratios that float cannot tell apart
  EXPECT_TRUE(same_bits(layer.weight, last.weight));
  EXPECT_TRUE(same_bits(layer.velocity, last.velocity));
}

TEST(Inundate, PerTensorGridEmptyLayerAndAutogradNotices) {
  Layer layer = make_layer({3, 20});
  layer.scale = scalar(0.02f);
  layer.zero_point = scalar(0);
  EXPECT_EQ(layer.step().crossings, 1);
  Layer empty{{at::empty({0, 3}), at::empty({0, 3}), at::empty({0, 3}), at::empty({0}),
               at::empty({0}), -8, 7}};
  EXPECT_EQ(empty.step().k, 1);
  layer.weight.requires_grad_();
  const at::Tensor loss = (layer.weight * layer.weight).sum();
  layer.step();
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(Inundate, BadArgumentsAreNamed) {
  const Layer good = make_layer({3, 4});
  const auto with = [&](auto change, const std::string& message) {
    Layer layer = good;
    change(layer);
    expect_error([&] { layer.step(); }, message);
  };
  with([](Layer& l) { l.gradient = at::ones({3, 5}); }, "inundate_: gradient is Float[3, 5]");
  with([](Layer& l) { l.velocity = at::ones({4, 3}).t(); }, "velocity is in another memory format");
  with([](Layer& l) { l.weight = at::ones({4, 3}).t(); }, "weight is strided");
  with([](Layer& l) { l.scale = at::ones({2}); }, "scale is Float[2]");
  expect_error([&] { inundate_({good}, {}, at::ones({2})); }, "last_k is Float[2]");
  expect_error([] { inundate_({}, {}); }, "layers is empty");
  with([](Layer& l) { l.args.lr = kNan; }, "lr is nan");
  with([](Layer& l) { l.args.k_max = 0.5; }, "k_max is 0.5");
  with([](Layer& l) { l.args.crossing_rate = 2; }, "crossing_rate is 2");
  with([](Layer& l) { l.qmax = -8; }, "[qmin, qmax] is [-8, -8]");
}

}  // namespace
}  // namespace zsq::cuda_kernels
