// SPDX-License-Identifier: Apache-2.0
#include "train/weight_steps.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cuda_kernels/fake_quant.h"
#include "quant/level_ranks.h"
#include "tests/support/error_message.h"
#include "tests/train/tiny.h"

namespace zsq::train {
namespace {

std::vector<at::Tensor> random_gradients(const WeightSteps& steps, std::uint64_t seed) {
  std::vector<at::Tensor> gradients;
  for (const auto& weight : steps.weights()) {
    gradients.push_back(
        at::randn(weight.sizes(), at::detail::createCPUGenerator(seed++), at::kFloat));
  }
  return gradients;
}

at::Tensor codes(const quant::Student& student, const quant::WeightSite& site,
                 const at::Tensor& weight) {
  const auto grid = site.op->grid(weight, student.parameters);
  return cuda_kernels::quantize(weight, grid.scale, grid.zero_point, site.op->spec().qmin,
                                site.op->spec().qmax);
}

TEST(WeightSteps, ExactInundationChangesTheShareOfCodesThatWasAsked) {
  Tiny tiny;
  WeightSteps steps(tiny.student, tiny.options);
  const auto sites = quant::weight_sites(tiny.student);
  for (int t = 0; t < 5; ++t) {
    std::vector<at::Tensor> before;
    for (const auto& site : sites) {
      before.push_back(codes(tiny.student, site, tiny.student.parameters.at(site.parameter)));
    }
    steps.step(random_gradients(steps, 10 * t), 1);
    for (std::size_t layer = 0; layer < sites.size(); ++layer) {
      const auto& weight = tiny.student.parameters.at(sites[layer].parameter);
      const auto changed = codes(tiny.student, sites[layer], weight).ne(before[layer]).sum();
      const auto wanted = std::ceil(tiny.options.crossing_rate * weight.numel());
      EXPECT_GE(changed.item<double>(), wanted) << sites[layer].parameter;
      EXPECT_LE(changed.item<double>(), wanted + 1) << sites[layer].parameter;  // one for a tie
    }
  }
  const auto report = steps.report();
  ASSERT_EQ(report.size(), 3u);
  EXPECT_EQ(report[0].name, "conv1");
  EXPECT_NEAR(report[1].crossings, tiny.options.crossing_rate, 0.003);
  EXPECT_EQ(report[1].range_update_flips, 0);
  EXPECT_GT(report[1].k, 1);
}

TEST(WeightSteps, TheScheduleScalesTheShare) {
  Tiny tiny;
  WeightSteps steps(tiny.student, tiny.options);
  steps.step(random_gradients(steps, 0), 0.1);
  EXPECT_NEAR(steps.report()[1].crossings, 2.0 / 576, 1e-9);  // ceil(0.02 * 0.1 * 576) = 2
}

TEST(WeightSteps, OffIsPlainNesterov) {
  Tiny tiny;
  tiny.options.inundation = Inundation::off;
  tiny.options.lr = 0.5;
  WeightSteps steps(tiny.student, tiny.options);
  const auto start = steps.weights()[1].clone();
  const auto g = random_gradients(steps, 0), h = random_gradients(steps, 100);
  steps.step(g, 1);
  steps.step(h, 1);
  const auto v1 = g[1], v2 = 0.9 * v1 + h[1];
  const auto expected = start - 0.5 * (g[1] + 0.9 * v1) - 0.5 * (h[1] + 0.9 * v2);
  EXPECT_LT((steps.weights()[1] - expected).abs().max().item<double>(), 1e-5);
}

// Every weight of a layer moves by the rate times its channel's scale where its gradient is not 0.
TEST(WeightSteps, AdamMovesInScalesOfTheGrid) {
  Tiny tiny;
  tiny.options.optimizer = Optimizer::adam;
  tiny.options.inundation = Inundation::off;
  tiny.options.lr = 0.1;
  WeightSteps steps(tiny.student, tiny.options);
  const auto site = quant::weight_sites(tiny.student)[1];
  const auto start = steps.weights()[1].clone();
  const auto scale = site.op->grid(start, tiny.student.parameters).scale.view({-1, 1, 1, 1});
  const auto before = codes(tiny.student, site, start);
  const auto g = random_gradients(steps, 0);
  steps.step(g, 0.5);
  const auto expected = start - 0.05 * scale * g[1].sign();
  EXPECT_LT((steps.weights()[1] - expected).abs().max().item<double>(), 1e-5);
  const auto changed = codes(tiny.student, site, steps.weights()[1]).ne(before);
  EXPECT_NEAR(steps.report()[1].crossings, changed.to(at::kDouble).mean().item<double>(), 1e-9);
}

// The published variant against the search written out for one layer, with ranges computed again.
TEST(WeightSteps, PublishedSearchTakesCodesWithMovedRanges) {
  Tiny tiny(1, four_bits(/*range_every_step=*/true));
  tiny.options.inundation = Inundation::published;
  WeightSteps steps(tiny.student, tiny.options);
  const auto site = quant::weight_sites(tiny.student)[1];
  const auto start = steps.weights()[1].clone();
  const auto gradients = random_gradients(steps, 3);
  const auto step = gradients[1] * 1.9 * tiny.options.lr;
  const auto share = [&](double k) {
    return codes(tiny.student, site, start - step * k)
        .ne(codes(tiny.student, site, start))
        .to(at::kDouble)
        .mean()
        .item<double>();
  };
  double high = 1;
  while (share(high) < 0.02) high *= 2;
  double low = high / 2, k = high;
  for (int i = 0; i < 5; ++i) {
    k = 0.5 * (low + high);
    const double reached = share(k);
    if (std::abs(reached - 0.02) < 0.0002) break;
    if (reached < 0.02) low = k;
    if (reached >= 0.02) high = k;
  }
  steps.step(gradients, 1);
  EXPECT_GT(k, 1);
  EXPECT_LT((steps.weights()[1] - (start - step * k)).abs().max().item<double>(), 1e-5);
  EXPECT_EQ(steps.report()[1].k, k);
}

// How often a tensor is asked for its value while `run` runs: on a GPU each time waits for it, and
// cannot be recorded.
int values_read(const std::function<void()>& run) {
  static int reads;
  reads = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& f) -> std::unique_ptr<at::ObserverContext> {
        reads += std::string(f.name()) == "aten::_local_scalar_dense";
        return nullptr;
      }));
  run();
  at::removeCallback(handle);
  return reads;
}

TEST(WeightSteps, OnlyThePublishedSearchReadsBack) {
  for (const bool every_step : {true, false}) {
    for (const auto how : {Inundation::exact, Inundation::off, Inundation::published}) {
      Tiny tiny(1, four_bits(every_step));
      tiny.options.inundation = how;
      WeightSteps steps(tiny.student, tiny.options);
      const auto gradients = random_gradients(steps, 0);
      const int reads = values_read([&] { steps.step(gradients, 1); });
      EXPECT_EQ(reads > 0, how == Inundation::published) << static_cast<int>(how);
    }
  }
}

// The k of the step before is a hint alone: a run that goes on without it gives the same.
TEST(WeightSteps, ResumesToTheBit) {
  Tiny whole, halves;
  WeightSteps steps(whole.student, whole.options), before(halves.student, halves.options),
      after(halves.student, halves.options);
  for (int t = 0; t < 3; ++t) {
    steps.step(random_gradients(steps, 10 * t), 1);
    before.step(random_gradients(before, 10 * t), 1);
  }
  const auto saved = before.state(), loaded = after.state();
  for (std::size_t i = 0; i < saved.size(); ++i) loaded[i].second.copy_(saved[i].second);
  steps.step(random_gradients(steps, 30), 1);
  after.step(random_gradients(after, 30), 1);
  expect_equal(whole.student.parameters, halves.student.parameters);
  EXPECT_EQ(steps.report()[1].k, after.report()[1].k);
  EXPECT_EQ(steps.report()[1].crossings, after.report()[1].crossings);
}

TEST(WeightSteps, DriftOfRangesIsCountedApart) {
  Tiny tiny(1, four_bits(/*range_every_step=*/true));
  tiny.options.c_max = 1e6;  // let the extreme weights run, and with them the range
  tiny.options.crossing_rate = 0.3;
  WeightSteps steps(tiny.student, tiny.options);
  for (int t = 0; t < 5; ++t) steps.step(random_gradients(steps, t), 1);
  EXPECT_GT(steps.report()[1].range_update_flips, 0);
  EXPECT_NEAR(steps.report()[1].crossings, 0.3, 0.02);
}

QuantOptions table_weights() {
  QuantOptions options = four_bits();
  options.weights.level_tables = {LevelTable::normal};
  return options;
}

// The share that was asked of each layer moves to another level, most of it by a single one.
TEST(WeightSteps, InundateWeightsWithLevelTables) {
  Tiny tiny(1, table_weights());
  const quant::LevelRanks ranks(tiny.student);
  WeightSteps steps(tiny.student, tiny.options);
  const auto sites = quant::weight_sites(tiny.student);
  for (int t = 0; t < 30; ++t) {
    std::vector<at::Tensor> before;
    for (const auto& site : sites)
      before.push_back(
          site.op->forward({tiny.student.parameters.at(site.parameter)}, tiny.student.parameters));
    steps.step(random_gradients(steps, 10 * t), 1);
    for (std::size_t layer = 0; layer < sites.size(); ++layer) {
      const auto& weight = tiny.student.parameters.at(sites[layer].parameter);
      const auto after = sites[layer].op->forward({weight}, tiny.student.parameters);
      const auto changed = after.ne(before[layer]).sum().item<double>();
      const auto wanted =
          std::ceil(tiny.options.crossing_rate * static_cast<double>(weight.numel()));
      EXPECT_GE(changed, wanted);
      EXPECT_LE(changed, wanted + 1);
    }
  }
}

// Moved weights would leave their tables; train::run puts them into ranks first.
TEST(WeightSteps, RefuseLevelTables) {
  Tiny tiny(1, table_weights());
  EXPECT_EQ(test::error_message(ErrorCode::unsupported_model,
                                [&] { WeightSteps(tiny.student, tiny.options); })
                .rfind("gradient inundation", 0),
            0U);
}

}  // namespace
}  // namespace zsq::train
