// SPDX-License-Identifier: Apache-2.0
// The CUDA implementation of what works on many layers at once against its CPU implementation.
// Needs a GPU.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "cuda_kernels/device_graph.h"
#include "cuda_kernels/inundation.h"
#include "cuda_kernels/layer_fake_quant.h"
#include "cuda_kernels/weight_range.h"
#include "tests/cuda_kernels/cpu_and_cuda.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

// Layers of every size, more than one table of them holds.
std::vector<std::vector<std::int64_t>> layer_shapes() {
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::int64_t i = 0; i < 60; ++i)
    shapes.push_back({1 + i % 7, 1 + i % 5, 1 + i % 4, 1 + i % 4});
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{1, 1}, {6, 4, 3, 3}, {512, 512, 3, 3}, {1000, 512}})
    shapes.push_back(shape);
  return shapes;
}

TEST_F(CpuAndCuda, CrossingRatios) {
  const at::Tensor w = random({64, 90}, 0.1), g = random({64, 90}, 1e-4);
  const auto op = [](const auto& t) { return crossing_ratios(t[0], t[1], t[2], t[3], -8, 7); };
  const auto [lo, hi] = channel_min_max(w);
  const Grid grid = grid_from_range(lo, hi, -8, 7, false);
  expect_same_bits(op, {w, g, grid.scale, grid.zero_point});
}

TEST_F(CpuAndCuda, Inundation) {
  for (const double rate : {1e-4, 0.02, 1.0}) {
    std::vector<InundationLayer> here, there;
    for (const auto& shape : layer_shapes()) {
      const at::Tensor w = random(shape, 0.1), v = random(shape, 1e-4);
      const Grid grid = layer_grids({{.weight = w, .qmin = -8, .qmax = 7}})[0];
      here.push_back({w, v, random(shape, 1e-4), grid.scale, grid.zero_point, -8, 7});
    }
    here[61].gradient.view({-1})[3] = kNan;
    for (const auto& l : here)
      there.push_back({l.weight.to(at::kCUDA), l.velocity.to(at::kCUDA), l.gradient.to(at::kCUDA),
                       l.scale.to(at::kCUDA), l.zero_point.to(at::kCUDA), -8, 7});
    const InundationArgs args{.crossing_rate = rate};
    const InundationResult a = inundate_(here, args), b = inundate_(there, args);
    EXPECT_TRUE(same_bits(a.k, b.k.cpu()));
    EXPECT_TRUE(at::equal(a.crossings, b.crossings.cpu()));
    EXPECT_TRUE(at::equal(a.skipped, b.skipped.cpu()));
    EXPECT_TRUE(a.skipped[61].item<bool>());
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_TRUE(same_bits(here[i].weight, there[i].weight.cpu())) << i;
      EXPECT_TRUE(same_bits(here[i].velocity, there[i].velocity.cpu())) << i;
    }
  }
}

TEST_F(CpuAndCuda, FakeQuantLayers) {
  for (const bool per_channel : {true, false}) {
    std::vector<QuantLayer> here, there;
    for (const auto& shape : layer_shapes()) {
      QuantLayer layer{.weight = leaf(random(shape)),
                       .qmin = -4,
                       .qmax = 3,
                       .symmetric = here.size() % 3 == 0,
                       .per_channel = per_channel};
      if (here.size() % 2) layer.grid = {leaf(at::full({}, 0.3f)), at::full({}, 1.0f)};
      here.push_back(layer);
      layer.weight = on_gpu(layer.weight);
      if (here.size() % 2 == 0)
        layer.grid = {on_gpu(layer.grid.scale), layer.grid.zero_point.to(at::kCUDA)};
      there.push_back(layer);
    }
    const auto a = layer_grids(here), b = layer_grids(there);
    const auto y = fake_quant_layers(here), y_gpu = fake_quant_layers(there);
    at::Tensor sum = at::zeros({}), sum_gpu = at::zeros({}, at::kCUDA);
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_TRUE(same_bits(a[i].scale, b[i].scale.cpu())) << i;
      EXPECT_TRUE(same_bits(a[i].zero_point, b[i].zero_point.cpu())) << i;
      EXPECT_TRUE(same_bits(y[i], y_gpu[i].cpu())) << i;
      const at::Tensor dy = random(y[i].sizes());
      sum = sum + (dy * y[i]).sum();
      sum_gpu = sum_gpu + (dy.to(at::kCUDA) * y_gpu[i]).sum();
    }
    sum.backward();
    sum_gpu.backward();
    auto moved = here, moved_gpu = there;
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_TRUE(same_bits(here[i].weight.grad(), there[i].weight.grad().cpu())) << i;
      EXPECT_TRUE(i % 2 == 0 || at::allclose(here[i].grid.scale.grad(),
                                             there[i].grid.scale.grad().cpu(), 1e-5, 1e-5));
      moved[i].weight = here[i].weight * 1.1;
      moved_gpu[i].weight = moved[i].weight.to(at::kCUDA);
    }
    EXPECT_TRUE(at::equal(changed_codes(here, moved), changed_codes(there, moved_gpu).cpu()));
  }
}

// Nothing is read back, and the layers reach a recording by value.
TEST_F(CpuAndCuda, LayersCanBeRecorded) {
  const auto options = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  std::vector<QuantLayer> layers;
  std::vector<InundationLayer> moving;
  for (const auto& shape : layer_shapes()) {
    const at::Tensor w = random(shape, 0.1).to(at::kCUDA);
    layers.push_back({.weight = w, .qmin = -8, .qmax = 7});
  }
  const auto grids = layer_grids(layers);
  for (std::size_t i = 0; i < layers.size(); ++i)
    moving.push_back({layers[i].weight, at::zeros_like(layers[i].weight),
                      at::randn(layers[i].weight.sizes(), options), grids[i].scale,
                      grids[i].zero_point, -8, 7});
  auto plain = moving;
  for (auto& layer : plain) {
    layer.weight = layer.weight.clone();
    layer.velocity = layer.velocity.clone();
  }
  const auto graph = make_device_graph(options.device());
  InundationResult result;
  const auto body = [&] {
    result = inundate_(moving, {});
    changed_codes(layers, layers);
    fake_quant_layers(layers);
  };
  graph->warm_up(body);
  inundate_(plain, {});
  graph->record(body);
  for (int replay = 0; replay < 2; ++replay) {
    graph->replay();
    const InundationResult expected = inundate_(plain, {});
    EXPECT_TRUE(same_bits(result.k.cpu(), expected.k.cpu()));
    EXPECT_TRUE(at::equal(result.crossings, expected.crossings));
    EXPECT_TRUE(same_bits(moving[62].weight.cpu(), plain[62].weight.cpu()));
  }
}

}  // namespace
}  // namespace zsq::cuda_kernels
