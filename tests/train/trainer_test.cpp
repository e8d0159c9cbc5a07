// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <tuple>

#include "core/error.h"
#include "cuda_kernels/fake_quant.h"
#include "models/execute.h"
#include "quant/level_table.h"
#include "quant/rounding/squant.h"
#include "tests/support/quantized.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"
#include "train/schedule.h"

namespace zsq::train {
namespace {

TEST(Run, WarmsUpCalibratesAndTrains) {
  Tiny tiny;
  const auto before = tiny.student.parameters.clone();
  const auto teacher = tiny.teacher.parameters.clone();
  Watch watch;
  const auto report = run(tiny.job(), watch);
  EXPECT_EQ(report.iterations, 10);
  EXPECT_EQ(report.skipped, 0);
  ASSERT_EQ(watch.seen.size(), 10u);
  EXPECT_EQ(watch.seen[2].phase, "warm-up");
  EXPECT_EQ(watch.seen[3].phase, "fine-tune");
  EXPECT_EQ(watch.seen[9].step, 10);
  EXPECT_EQ(watch.seen[9].total, 10);
  EXPECT_EQ(report.loss_generator, watch.seen[9].metrics[0].second);  // 5 % of 10: the last one
  EXPECT_EQ(report.loss_student, watch.seen[9].metrics[1].second);
  for (const Progress& progress : watch.seen) {
    const auto& [bns, factor] = std::pair(progress.details[0], progress.details[1]);
    EXPECT_EQ(bns.first, "bn_statistics");
    // What is left of the loss is a cross-entropy.
    const double weight = tiny.generator.options().bns_weight;
    EXPECT_GT(bns.second, 0);
    EXPECT_GT(progress.metrics[0].second, weight * bns.second);
    EXPECT_EQ(factor.first, "rate_factor");
    EXPECT_EQ(factor.second,
              rate_factor(tiny.options, static_cast<double>(progress.step - 1) / 10));
  }
  for (const char* name :
       {"conv1.weight", "conv2.bn.gamma", "conv1.bn.beta", "fc.weight", "fc.bias"}) {
    EXPECT_FALSE(tiny.student.parameters.at(name).equal(before.at(name))) << name;
    EXPECT_FALSE(tiny.student.parameters.at(name).requires_grad());
  }
  EXPECT_TRUE(tiny.student.parameters.at("conv1.bn.mean").equal(before.at("conv1.bn.mean")));
  expect_equal(tiny.teacher.parameters, teacher);
  for (const auto id : quant::activation_sites(tiny.student.graph)) {
    const auto* op = quant::activation_quantizer(tiny.student.graph[id]);
    EXPECT_TRUE(tiny.student.parameters.contains(op->scale_name()));
  }
}

// Held-out KL of a student of two-bit weights: calibrated only, and after 100 steps.
TEST(Run, TeachesTheStudent) {
  auto coarse = four_bits();
  coarse.weights.num_bits = 3;
  Observer silent;
  const auto kl_after = [&](std::int64_t iterations, double warmup,
                            Precision precision = Precision::fp32) {
    double sum = 0;  // where one run ends depends on rounding by a factor of five
    for (const std::uint64_t seed : {1, 2}) {
      Tiny tiny(seed, coarse);
      tiny.teacher.parameters.at("fc.weight").mul_(5);  // answers that are worth following
      tiny.student = test::quantized(tiny.teacher, coarse);
      tiny.options.iterations = iterations;
      tiny.options.warmup = warmup;
      tiny.options.precision = precision;
      tiny.options.affine_lr = 3e-3;
      tiny.options.crossing_rate = 0.005;
      run(tiny.job(), silent);
      sum += measure_agreement(tiny.teacher, tiny.student, held_out_images(tiny.generator, 256)).kl;
    }
    return sum;
  };
  const double untaught = kl_after(20, 1);
  EXPECT_LT(kl_after(120, 1.0 / 6), 0.25 * untaught);
  EXPECT_LT(kl_after(120, 1.0 / 6, Precision::bf16), 0.25 * untaught);
}

std::vector<at::Tensor> codes_of(const quant::Student& student) {
  std::vector<at::Tensor> codes;
  for (const auto& site : quant::weight_sites(student)) {
    const auto& weight = student.parameters.at(site.parameter);
    const auto grid = site.op->grid(weight, student.parameters);
    const auto& spec = site.op->spec();
    codes.push_back(
        cuda_kernels::quantize(weight, grid.scale, grid.zero_point, spec.qmin, spec.qmax));
  }
  return codes;
}

// Codes as SQuant leaves them, on ranges that the run does not take anew.
TEST(Run, StartsFromSquantAndKeepsItsCodes) {
  QuantOptions deploy;
  deploy.weights.num_bits = 3;
  deploy.weights.rounding = WeightRounding::squant;
  deploy.activations.calibration_images = 16;
  auto nearest = deploy;
  nearest.weights.rounding = WeightRounding::nearest;
  Tiny tiny(1, deploy), plain(1, nearest);
  const auto at_start = codes_of(tiny.student);
  // The same student, rounded here.
  const auto before = codes_of(plain.student);
  quant::round_weights_by_squant(plain.student);
  const auto by_squant = codes_of(plain.student);
  std::int64_t flipped = 0;
  for (std::size_t i = 0; i < at_start.size(); ++i) {
    EXPECT_TRUE(at_start[i].equal(by_squant[i])) << i;
    flipped += by_squant[i].ne(before[i]).sum().item<std::int64_t>();
  }
  EXPECT_GT(flipped, 0);
  tiny.options.lr = tiny.options.affine_lr = tiny.options.scale_lr = 0;
  tiny.options.inundation = Inundation::off;
  tiny.options.learnable_scales = LearnableScales::all;
  Observer silent;
  run(tiny.job(), silent);
  const auto after = codes_of(tiny.student);
  for (std::size_t i = 0; i < at_start.size(); ++i) EXPECT_TRUE(after[i].equal(at_start[i])) << i;
}

TEST(Run, LetsTheNamedScalesLearn) {
  const auto after = [](LearnableScales which, bool range_every_step) {
    Tiny tiny(1, four_bits(range_every_step));
    tiny.options.learnable_scales = which;
    tiny.options.affine_lr = 0;  // both stand still otherwise, so that only scales differ
    tiny.options.lr = 1e-12;
    tiny.options.inundation = Inundation::off;
    Observer silent;
    run(tiny.job(), silent);
    const auto relu = quant::activation_sites(tiny.student.graph).front();
    const auto* activations = quant::activation_quantizer(tiny.student.graph[relu]);
    const auto* weights = quant::weight_sites(tiny.student).front().op;
    const auto& p = tiny.student.parameters;
    EXPECT_FALSE(p.at(activations->scale_name()).requires_grad());
    EXPECT_EQ(p.at(activations->zero_point_name()).item<float>(), 0);
    return std::pair{p.at(activations->scale_name()).clone(), p.at(weights->scale_name()).clone()};
  };
  for (const bool range_every_step : {false, true}) {
    const auto [activation, weight] = after(LearnableScales::none, range_every_step);
    const auto [activation1, weight1] = after(LearnableScales::activations, range_every_step);
    const auto [activation2, weight2] = after(LearnableScales::all, range_every_step);
    // Seven student steps of at most 0.001 in the logarithm.
    const double change = activation1.div(activation).log().abs().item<double>();
    EXPECT_GT(change, 1e-4);
    EXPECT_LT(change, 7.1e-3);
    EXPECT_TRUE(weight1.equal(weight));
    EXPECT_EQ(weight2.equal(weight), range_every_step);
    EXPECT_FALSE(activation2.equal(activation));
  }
}

// Weights move, and end on levels of their tables.
TEST(Run, TrainsWeightsWithLevelTables) {
  QuantOptions tables = four_bits();
  tables.weights.level_tables = {LevelTable::normal};
  Tiny tiny(1, tables);
  tiny.options.k_max = 1e7;  // from the middle of a cell the way to another level is long
  const auto before = tiny.student.parameters.clone();
  Observer silent;
  run(tiny.job(), silent);
  for (const auto& site : quant::weight_sites(tiny.student)) {
    const auto& weight = tiny.student.parameters.at(site.parameter);
    EXPECT_FALSE(weight.equal(before.at(site.parameter)));
    const auto [scale, levels] = quant::level_grids(*site.op, tiny.student.parameters);
    ASSERT_TRUE(levels.defined());
    EXPECT_TRUE(levels.equal(before.at(site.op->levels_name())));
    const auto of_channel = levels.mul(scale.unsqueeze(1)).unsqueeze(1);
    EXPECT_TRUE(weight.flatten(1).unsqueeze(2).eq(of_channel).any(2).all().item<bool>());
  }
}

TEST(Run, OneSeedOneResult) {
  Tiny a(5), b(5), other(6);
  Observer silent;
  run(a.job(), silent);
  run(b.job(), silent);
  run(other.job(), silent);
  expect_equal(a.student.parameters, b.student.parameters);
  EXPECT_FALSE(
      a.student.parameters.at("conv1.weight").equal(other.student.parameters.at("conv1.weight")));
}

TEST(Run, WithoutFineTuningItStillCalibrates) {
  for (const bool only_warmup : {false, true}) {
    Tiny tiny;
    only_warmup ? tiny.options.warmup = 1 : tiny.options.iterations = 0;
    const auto before = tiny.student.parameters.clone();
    Watch watch;
    const auto report = run(tiny.job(), watch);
    EXPECT_EQ(report.iterations, only_warmup ? 10 : 0);
    EXPECT_TRUE(tiny.student.parameters.at("conv1.weight").equal(before.at("conv1.weight")));
    const auto* op = quant::activation_quantizer(
        tiny.student.graph[quant::activation_sites(tiny.student.graph)[0]]);
    EXPECT_TRUE(tiny.student.parameters.contains(op->scale_name()));
  }
}

at::Tensor generator_tensor(const generator::Generator& generator, const std::string& wanted) {
  for (const auto& [name, tensor] : generator.parameters())
    if (name == wanted) return tensor.detach();
  throw Error(ErrorCode::internal, wanted);
}

TEST(Run, SkipsStepsWhoseGradientsAreNotFinite) {
  Tiny tiny;
  tiny.options.max_skipped = 0.2;
  auto weight = generator_tensor(tiny.generator, "conv3.bias");
  const auto healthy = weight.clone();
  Watch watch;
  watch.at_step = [&](std::int64_t step) {
    if (step == 5) weight.fill_(std::numeric_limits<float>::quiet_NaN());
    if (step == 7) weight.copy_(healthy);
  };
  const auto report = run(tiny.job(), watch);
  EXPECT_EQ(report.skipped, 2);
  EXPECT_EQ(report.iterations, 10);
  for (const auto& name : tiny.student.parameters.names())
    EXPECT_TRUE(tiny.student.parameters.at(name).isfinite().all().item<bool>()) << name;
  for (const auto& [name, tensor] : tiny.generator.parameters())
    EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
}

TEST(Run, ReadingLossesLaterChangesNothingElse) {
  const auto report_of = [](std::int64_t read_every, Watch& watch) {
    Tiny tiny;
    auto job = tiny.job();
    job.read_every = read_every;
    const auto report = run(job, watch);
    EXPECT_EQ(watch.seen.size(), 10u);
    return std::tuple(report.loss_generator, report.loss_student, report.iterations);
  };
  Watch now, later;
  EXPECT_EQ(report_of(1, now), report_of(4, later));
  ASSERT_EQ(now.seen.size(), later.seen.size());
  for (std::size_t i = 0; i < now.seen.size(); ++i) {
    EXPECT_EQ(now.seen[i].phase, later.seen[i].phase);
    EXPECT_EQ(now.seen[i].step, later.seen[i].step);
    EXPECT_EQ(now.seen[i].metrics, later.seen[i].metrics);
  }
}

TEST(Run, GivesUpWhenTooManyStepsAreSkippedAndKeepsTheCheckpoint) {
  const test::TempFolder folder;
  Tiny tiny;
  tiny.options.max_skipped = 0.1;
  auto job = tiny.job();
  job.checkpoint = folder / "state.safetensors";
  job.checkpoint_every = 4;
  auto weight = generator_tensor(tiny.generator, "conv3.bias");
  Watch watch;
  watch.at_step = [&](std::int64_t step) {
    if (step == 5) weight.fill_(std::numeric_limits<float>::quiet_NaN());
  };
  try {
    run(job, watch);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::numeric_failure);
  }
  EXPECT_EQ(watch.seen.size(), 6u);  // one skip is allowed, the second ends the run
  EXPECT_TRUE(std::filesystem::exists(job.checkpoint));
}

// With range_every_step the stored grids are those of the final weights.
TEST(Run, LeavesTheGridsOfTheFinalWeights) {
  Tiny tiny(1, four_bits(/*range_every_step=*/true));
  Observer silent;
  run(tiny.job(), silent);
  for (const auto& site : quant::weight_sites(tiny.student)) {
    const auto& weight = tiny.student.parameters.at(site.parameter);
    const auto grid = site.op->grid(weight, tiny.student.parameters);
    EXPECT_TRUE(grid.scale.equal(tiny.student.parameters.at(site.op->scale_name())));
  }
}

}  // namespace
}  // namespace zsq::train
