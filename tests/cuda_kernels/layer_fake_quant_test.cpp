// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/layer_fake_quant.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

// Own and given grids, per channel and per tensor, that learn and do not, in every memory format.
std::vector<QuantLayer> layers() {
  std::vector<QuantLayer> all;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {16, 3, 3, 3}, {40, 1, 3, 3}, {1, 5}, {300, 200}, {64, 64, 3, 3}, {2, 1}}) {
    for (const bool own : {true, false}) {
      for (const bool per_channel : {true, false}) {
        QuantLayer layer{.weight = leaf(random(shape)), .qmin = -8, .qmax = 7};
        if (shape.size() == 4 && own)
          layer.weight = leaf(layer.weight.contiguous(at::MemoryFormat::ChannelsLast));
        layer.per_channel = per_channel;
        layer.symmetric = shape[0] % 3 == 1;
        layer.surrogate = shape[0] == 300 ? Surrogate::pass_through : Surrogate::clipped;
        if (!own) {
          const auto rows =
              per_channel ? std::vector<std::int64_t>{shape[0]} : std::vector<std::int64_t>{};
          layer.grid = {at::rand(rows) * 0.2 + 0.05, at::randint(-8, 8, rows).to(at::kFloat)};
          if (shape[0] >= 40) layer.grid.scale = leaf(layer.grid.scale);
        }
        all.push_back(layer);
      }
    }
  }
  return all;
}

// What each op does by itself.
Grid grid_alone(const QuantLayer& layer) {
  if (layer.grid.scale.defined()) return layer.grid;
  const at::Tensor rows =
      layer.per_channel ? layer.weight : layer.weight.detach().contiguous().view({1, -1});
  const auto [lo, hi] = channel_min_max(rows);
  const Grid grid = grid_from_range(lo, hi, layer.qmin, layer.qmax, layer.symmetric);
  return layer.per_channel ? grid : Grid{grid.scale.squeeze(0), grid.zero_point.squeeze(0)};
}

TEST(FakeQuantLayers, IsThatOfEachLayerToTheBit) {
  const auto all = layers();
  const auto grids = layer_grids(all);
  const auto outputs = fake_quant_layers(all);
  std::vector<at::Tensor> gradients;
  at::Tensor sum = at::zeros({});
  for (const auto& y : outputs) {
    gradients.push_back(random(y.sizes()));
    sum = sum + (y * gradients.back()).sum();
  }
  sum.backward();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Grid grid = grid_alone(all[i]);
    EXPECT_TRUE(same_bits(grids[i].scale, grid.scale)) << i;
    EXPECT_TRUE(same_bits(grids[i].zero_point, grid.zero_point)) << i;
    const at::Tensor w = leaf(all[i].weight);
    const bool learns = grid.scale.requires_grad();
    const at::Tensor scale = learns ? leaf(grid.scale) : grid.scale;
    const at::Tensor y =
        fake_quant(w, scale, grid.zero_point, all[i].qmin, all[i].qmax, all[i].surrogate);
    (y * gradients[i]).sum().backward();
    EXPECT_TRUE(same_bits(outputs[i], y)) << i;
    EXPECT_EQ(outputs[i].strides(), y.strides()) << i;
    EXPECT_TRUE(same_bits(all[i].weight.grad(), w.grad())) << i;
    EXPECT_TRUE(!learns || same_bits(all[i].grid.scale.grad(), scale.grad())) << i;
  }
}

TEST(FakeQuantLayers, ThreadsMakeNoDifference) {
  const auto all = layers();
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  const auto several = fake_quant_layers(all);
  at::set_num_threads(1);
  const auto one = fake_quant_layers(all);
  at::set_num_threads(threads);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(several[i], one[i])) << i;
}

TEST(FakeQuantLayers, NanShowsInItsRowAlone) {
  at::Tensor w = random({3, 200});
  w[1][150] = kNan;
  const auto y = fake_quant_layers(
      {{.weight = random({5, 7}), .qmin = -8, .qmax = 7}, {.weight = w, .qmin = -8, .qmax = 7}});
  const at::Tensor lost = at::isnan(y[1]).sum(1);
  EXPECT_TRUE(at::equal(lost, tensor_of({0L, 200L, 0L})));
  EXPECT_FALSE(at::isnan(y[0]).any().item<bool>());
}

TEST(FakeQuantLayers, AWeightThatMovedBeforeBackwardIsNoticed) {
  const at::Tensor w = leaf(random({4, 9}));
  const auto y = fake_quant_layers({{.weight = w, .qmin = -8, .qmax = 7}});
  w.detach().add_(1);
  EXPECT_THROW(y[0].sum().backward(), c10::Error);
}

TEST(ChangedCodes, HandWorked) {
  const Grid one{at::ones({}), at::zeros({})}, two{at::full({}, 2.0f), at::zeros({})};
  const QuantLayer a{values({0, 1, 5, 9}), -8, 7, Surrogate::clipped, one};
  QuantLayer moved = a, coarser = a;
  moved.weight = values({0.4f, 1.6f, 5.4f, 12});  // the last stays clamped
  coarser.grid = two;                             // codes 0, 0, 2, 4 for 0, 1, 5, 7
  EXPECT_TRUE(at::equal(changed_codes({a, a, a}, {moved, coarser, a}), tensor_of({1L, 3L, 0L})));
}

TEST(ChangedCodes, MatchesCodes) {
  auto before = layers(), after = before;
  for (QuantLayer& layer : after) layer.weight = layer.weight.detach() * 1.3 + 0.01;
  const auto counts = changed_codes(before, after);
  const auto old_grids = layer_grids(before), grids = layer_grids(after);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto codes = [&](const QuantLayer& layer, const Grid& grid) {
      return quantize(layer.weight, grid.scale, grid.zero_point, layer.qmin, layer.qmax);
    };
    EXPECT_EQ(
        counts[static_cast<std::int64_t>(i)].item<std::int64_t>(),
        (codes(before[i], old_grids[i]) != codes(after[i], grids[i])).sum().item<std::int64_t>())
        << i;
  }
}

TEST(FakeQuantLayers, BadArgumentsAreNamed) {
  const QuantLayer good{.weight = at::ones({2, 3}), .qmin = -8, .qmax = 7};
  const auto with = [&](auto change, const std::string& message) {
    QuantLayer bad = good;
    change(bad);
    expect_error([&] { fake_quant_layers({good, bad}); }, message);
  };
  with([](QuantLayer& l) { l.weight = at::ones({2}, at::kInt); }, "weight is Int[2]");
  with([](QuantLayer& l) { l.weight = at::ones({0, 3}); }, "at least one element");
  with([](QuantLayer& l) { l.qmin = 7; }, "[qmin, qmax] is [7, 7]");
  with([](QuantLayer& l) { l.grid = {at::ones({3}), at::ones({3})}; }, "scale is Float[3]");
  with(
      [](QuantLayer& l) {
        l.symmetric = true;
        l.qmin = 1;
      },
      "for a symmetric grid");
  expect_error([] { fake_quant_layers({}); }, "layers is empty");
  expect_error([&] { changed_codes({good}, {good, good}); }, "after is 2 layers");
}

}  // namespace
}  // namespace zsq::cuda_kernels
