// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/inundation.h"

#include <ATen/Parallel.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <numeric>

#include "cuda_kernels/inundation_math.h"
#include "tests/cuda_kernels/helpers.h"
#include "tests/reference/inundation.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

at::Tensor scalar(float v) { return at::scalar_tensor(v); }

struct Outcome {
  float k;
  std::int64_t crossings;
  bool skipped;
};
Outcome outcome_of(const InundationResult& result, std::int64_t layer = 0) {
  return {result.k[layer].item<float>(), result.crossings[layer].item<std::int64_t>(),
          result.skipped[layer].item<bool>()};
}

struct Layer : InundationLayer {
  InundationArgs args{.crossing_rate = 0.01, .k_max = 1e9, .c_max = kInf};

  Outcome step() { return outcome_of(inundate_({*this}, args)); }
  at::Tensor codes() const { return reference::codes(weight, scale, zero_point, qmin, qmax); }
  at::Tensor intended() const {
    return reference::nesterov_step(velocity, gradient, args.lr, args.momentum).step;
  }
  // The m-th smallest ratio, and what float resolution may add to it: a few units in the last place
  // of the weight, in steps.
  std::pair<double, double> wanted_factor(std::int64_t m) const {
    const at::Tensor step = intended();
    const auto r = reference::ratios_by_trial(weight, step, scale, zero_point, qmin, qmax);
    std::vector<std::int64_t> order(r.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return r[a] < r[b]; });
    const std::int64_t i = order[m - 1];
    const double threshold =
        std::abs(weight.view({-1})[i].item<float>()) + scale.max().item<float>();
    return {r[i], 1e-5 * r[i] + 5e-7 * threshold / std::abs(step.view({-1})[i].item<float>())};
  }
};

Layer make_layer(at::IntArrayRef shape) {
  const at::Tensor weight = random(shape, 0.1);
  const at::Tensor lo = weight.flatten(1).amin(1), hi = weight.flatten(1).amax(1);
  const at::Tensor scale = (hi - lo) / 15;
  return {{weight, random(shape, 1e-4), random(shape, 1e-4), scale,
           (-8 - at::round(lo / scale)).clamp(-8, 7), -8, 7}};
}

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

// Layers with weights on and beside thresholds, of shapes that runs, blocks and groups of layers
// divide and do not divide; a scale whose inverse is no normal float, one that is NaN, a skipped
// layer, one that cannot cross often enough.
std::vector<Layer> difficult_layers() {
  std::vector<Layer> layers;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{16, 3, 3, 3},
                                                                  {40, 1, 3, 3},
                                                                  {2, 1100},
                                                                  {7, 1},
                                                                  {760, 700},
                                                                  {64, 64, 3, 3},
                                                                  {3, 1500}}) {
    layers.push_back(make_layer(shape));
    Layer& layer = layers.back();
    std::vector<std::int64_t> per_row(shape.size(), 1);
    per_row[0] = shape[0];
    const at::Tensor scale = layer.scale.reshape(per_row);
    if (layers.size() % 2) {
      const at::Tensor ties = (at::round(layer.weight / scale) + 0.5) * scale;
      const at::Tensor beside = ties * (1 + 6e-8 * at::randint(-2, 3, shape));
      layer.weight = at::where(at::rand(shape) < 0.05, beside, layer.weight).to(at::kFloat);
    }
  }
  layers[1].scale = scalar(0.02f);
  layers[1].zero_point = scalar(3);
  layers[2].scale[0] = 2e38f;
  layers[2].scale[1] = 1e-40f;
  layers[3].gradient.zero_();
  layers[3].velocity.zero_();
  layers[5].scale[7] = kNan;
  layers[6].gradient[2][1499] = kInf;
  for (Layer& layer : layers) {
    layer.qmin = -8;
    layer.qmax = 7;
  }
  return layers;
}

// The sort of all ratios, one weight after the other, with the arithmetic of inundation_math.h.
Outcome step_by_sorting(Layer& layer) {
  const auto& args = layer.args;
  const InundationStep step{static_cast<float>(args.lr), static_cast<float>(args.momentum),
                            static_cast<float>(args.k_max), static_cast<float>(args.c_max)};
  const CodeRange range{-8, 7};
  const std::int64_t n = layer.weight.numel();
  float *w = layer.weight.mutable_data_ptr<float>(), *v = layer.velocity.mutable_data_ptr<float>();
  const float* g = layer.gradient.const_data_ptr<float>();
  const auto grid = [&](std::int64_t i) {
    const std::int64_t c = layer.scale.numel() == 1 ? 0 : i / (n / layer.weight.size(0));
    return UniformGrid{layer.scale.const_data_ptr<float>()[c],
                       layer.zero_point.const_data_ptr<float>()[c], range};
  };
  const auto step_of = [&](std::int64_t i) {
    return nesterov_step(next_velocity(v[i], g[i], step.momentum), g[i], step);
  };
  std::vector<float> ratios;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!is_finite(step_of(i))) return {1, 0, true};
    ratios.push_back(crossing_ratio(w[i], step_of(i), grid(i), kPastThreshold));
  }
  std::sort(ratios.begin(), ratios.end());
  const auto m = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(
             std::ceil(args.crossing_rate * static_cast<double>(n) * (1 - 1e-12))));
  Outcome outcome{inundation_factor(ratios[m - 1], step.k_max), 0, false};
  for (std::int64_t i = 0; i < n; ++i) {
    const float before = w[i];
    w[i] = inundated_weight(before, step_of(i), outcome.k, step.c_max * grid(i).scale);
    v[i] = next_velocity(v[i], g[i], step.momentum);
    outcome.crossings += grid(i).encode(before) != grid(i).encode(w[i]);
  }
  return outcome;
}

TEST(Inundate, ManyLayersAtOnceAreThatOfSortsToTheBit) {
  for (const double rate : {1e-4, 0.003, 0.2}) {
    const auto start = difficult_layers();
    auto truth = start;
    std::vector<Outcome> expected;
    at::Tensor right_k = at::empty({std::ssize(start)});
    for (std::size_t i = 0; i < start.size(); ++i) {
      truth[i].args = {.crossing_rate = rate, .k_max = 1e6, .c_max = 0.7};
      truth[i].weight = start[i].weight.clone();
      truth[i].velocity = start[i].velocity.clone();
      expected.push_back(step_by_sorting(truth[i]));
      right_k[static_cast<std::int64_t>(i)] = expected.back().k;
    }
    for (const at::Tensor& last_k :
         {at::Tensor(), right_k, at::zeros_like(right_k), at::full_like(right_k, 1.0f),
          at::full_like(right_k, 1e3f), at::full_like(right_k, kNan)}) {
      std::vector<InundationLayer> list(start.begin(), start.end());
      for (InundationLayer& layer : list) {
        layer.weight = layer.weight.clone();
        layer.velocity = layer.velocity.clone();
      }
      const auto result = inundate_(list, truth[0].args, last_k);
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Outcome got = outcome_of(result, static_cast<std::int64_t>(i));
        EXPECT_EQ(got.k, expected[i].k) << i << " " << rate;
        EXPECT_EQ(got.crossings, expected[i].crossings) << i << " " << rate;
        EXPECT_EQ(got.skipped, expected[i].skipped) << i;
        EXPECT_TRUE(same_bits(list[i].weight, truth[i].weight)) << i;
        EXPECT_TRUE(same_bits(list[i].velocity, truth[i].velocity)) << i;
      }
    }
  }
}

TEST(Inundate, ThreadsMakeNoDifference) {
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> weights[2], told[2];
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    at::manual_seed(7);
    std::vector<InundationLayer> list;
    for (const Layer& layer : difficult_layers()) list.push_back(layer);
    const auto result = inundate_(list, {.crossing_rate = 0.003, .k_max = 1e6});
    for (const auto& layer : list) weights[count > 1].push_back(layer.weight);
    told[count > 1] = {result.k, result.crossings.to(at::kFloat), result.skipped.to(at::kFloat)};
  }
  at::set_num_threads(threads);
  for (std::size_t i = 0; i < weights[0].size(); ++i)
    EXPECT_TRUE(same_bits(weights[0][i], weights[1][i])) << i;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(told[0][i], told[1][i])) << i;
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
