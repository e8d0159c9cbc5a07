// SPDX-License-Identifier: Apache-2.0
// Inundation of many layers at once.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/round.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "cuda_kernels/inundation_math.h"
#include "tests/cuda_kernels/inundation_layer.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

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

Layer on_host(const Layer& layer) {
  Layer host = layer;
  for (at::Tensor* t :
       {&host.weight, &host.velocity, &host.gradient, &host.scale, &host.zero_point})
    *t = t->to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
  return host;
}

// The sort of all ratios, one weight after the other, with the arithmetic of inundation_math.h; on
// the host.
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
    std::vector<Layer> truth;
    std::vector<Outcome> expected;
    at::Tensor right_k = at::empty({std::ssize(start)});
    for (std::size_t i = 0; i < start.size(); ++i) {
      truth.push_back(on_host(start[i]));
      truth[i].args = {.crossing_rate = rate, .k_max = 1e6, .c_max = 0.7};
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
        EXPECT_TRUE(same_bits(list[i].weight.cpu(), truth[i].weight)) << i;
        EXPECT_TRUE(same_bits(list[i].velocity.cpu(), truth[i].velocity)) << i;
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

}  // namespace
}  // namespace zsq::cuda_kernels
