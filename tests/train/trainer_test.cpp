// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <tuple>

#include "core/error.h"
#include "cuda_kernels/fake_quant.h"
#include "models/execute.h"
#include "quant/rounding/squant.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

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
  for (const char* name : {"conv1.w", "conv2.gamma", "conv1.beta", "fc.w", "fc.b"}) {
    EXPECT_FALSE(tiny.student.parameters.at(name).equal(before.at(name))) << name;
    EXPECT_FALSE(tiny.student.parameters.at(name).requires_grad());
  }
  EXPECT_TRUE(tiny.student.parameters.at("conv1.mean").equal(before.at("conv1.mean")));
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
      tiny.teacher.parameters.at("fc.w").mul_(5);  // answers that are worth following
      tiny.student = quant::insert_quantizers(tiny.teacher, coarse);
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

TEST(Run, OneSeedOneResult) {
  Tiny a(5), b(5), other(6);
  Observer silent;
  run(a.job(), silent);
  run(b.job(), silent);
  run(other.job(), silent);
  expect_equal(a.student.parameters, b.student.parameters);
  EXPECT_FALSE(a.student.parameters.at("conv1.w").equal(other.student.parameters.at("conv1.w")));
}

// A student that answers as its teacher does, or nearly, before it is trained.
QuantOptions eight_bits() {
  auto options = four_bits();
  options.weights.num_bits = options.activations.num_bits = 8;
  return options;
}

TEST(Checks, EndWithTheStartWhereTrainingDestroysTheStudent) {
  Tiny untouched(1, eight_bits()), wrecked(1, eight_bits()), unchecked(1, eight_bits());
  for (auto* tiny : {&untouched, &wrecked, &unchecked}) {
    tiny->teacher.parameters.at("fc.w").mul_(5);
    tiny->student = quant::insert_quantizers(tiny->teacher, eight_bits());
    tiny->options.milestones = {};  // one warm-up for all
    tiny->options.validation_images = 40;
    tiny->options.learnable_scales = LearnableScales::all;
  }
  for (auto* tiny : {&wrecked, &unchecked}) {
    tiny->options.affine_lr = 10;
    tiny->options.scale_lr = 1;
    tiny->options.crossing_rate = 0.9;
  }
  untouched.options.iterations = 3;  // all of them warm-up: calibrated, not trained
  untouched.options.warmup = 1;
  wrecked.options.validation_checks = 3;
  Observer silent;
  run(untouched.job(), silent);
  run(unchecked.job(), silent);
  Watch watch;
  const auto kept = run(wrecked.job(), watch).kept;
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->iteration, 3);
  EXPECT_EQ(kept->checks, 4);
  EXPECT_EQ(kept->kept.kl, kept->start.kl);
  EXPECT_GT(kept->last.kl, 10 * kept->start.kl);
  EXPECT_EQ(kept->kept.images, 40);
  expect_equal(wrecked.student.parameters, untouched.student.parameters);
  EXPECT_FALSE(
      unchecked.student.parameters.at("fc.b").equal(untouched.student.parameters.at("fc.b")));
  EXPECT_TRUE(watch.messages.back().starts_with("best checkpoint: iteration 3 of 10"))
      << watch.messages.back();
}

TEST(Checks, ReportTheKlThatTheStudentEndsWith) {
  auto coarse = four_bits();
  coarse.weights.num_bits = 2;
  Tiny tiny(1, coarse), unchecked(1, coarse);
  for (auto* t : {&tiny, &unchecked}) {
    t->teacher.parameters.at("fc.w").mul_(5);
    t->student = quant::insert_quantizers(t->teacher, coarse);
    t->options.iterations = 60;
    t->options.affine_lr = 1e-3;
  }
  tiny.options.validation_checks = 6;
  const auto images = at::randn({50, 3, 8, 8}, at::detail::createCPUGenerator(3), at::kFloat)
                          .contiguous(at::MemoryFormat::ChannelsLast);
  auto job = tiny.job();
  job.held_out = images;
  Observer silent;
  const auto kept = run(job, silent).kept;
  ASSERT_TRUE(kept.has_value());
  EXPECT_LT(kept->kept.kl, kept->start.kl);
  EXPECT_LE(kept->kept.kl, kept->last.kl);
  const auto now = measure_agreement(tiny.teacher, tiny.student, images);
  EXPECT_EQ(now.kl, kept->kept.kl);
  EXPECT_EQ(now.agreement, kept->kept.agreement);
  // Measuring is no part of the training.
  run(unchecked.job(), silent);
  const auto last = measure_agreement(unchecked.teacher, unchecked.student, images);
  EXPECT_EQ(last.kl, kept->last.kl);
}

class Resume : public ::testing::TestWithParam<int> {};

TEST_P(Resume, GivesTheResultOfAnUnbrokenRun) {
  for (const auto mode : {Inundation::exact, Inundation::published}) {
    const auto quant = four_bits(/*range_every_step=*/mode == Inundation::published);
    Tiny unbroken(1, quant), broken(1, quant), resumed(1, quant);
    for (auto* tiny : {&unbroken, &broken, &resumed}) {
      tiny->options.inundation = mode;
      tiny->options.learnable_scales = LearnableScales::all;
      tiny->options.scale_lr = 0.05;  // more than is good for it: the best state is not the last
      tiny->options.validation_checks = 3;
      tiny->options.validation_images = 20;
    }
    Watch watch;
    const auto expected = run(unbroken.job(), watch);

    const test::TempFolder folder;
    Watch stopper;
    stopper.stop_after = GetParam();
    auto job = broken.job();
    job.checkpoint = folder / "state.safetensors";
    try {
      run(job, stopper);
      FAIL() << "did not stop";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::stopped);
    }
    ASSERT_EQ(std::ssize(stopper.seen), GetParam());

    auto again = resumed.job();
    again.checkpoint = folder / "state.safetensors";
    again.resume = true;
    Watch rest;
    const auto report = run(again, rest);
    ASSERT_TRUE(report.kept.has_value());
    EXPECT_EQ(report.kept->iteration, expected.kept->iteration);
    EXPECT_EQ(report.kept->checks, expected.kept->checks);
    EXPECT_EQ(report.kept->start.kl, expected.kept->start.kl);
    EXPECT_EQ(report.kept->kept.kl, expected.kept->kept.kl);
    EXPECT_EQ(report.kept->last.kl, expected.kept->last.kl);
    EXPECT_EQ(report.iterations, 10);
    EXPECT_EQ(std::ssize(rest.seen), 10 - GetParam());
    EXPECT_EQ(report.loss_student, expected.loss_student);
    EXPECT_EQ(report.layers[1].crossings, expected.layers[1].crossings);
    EXPECT_EQ(report.layers[1].k, expected.layers[1].k);
    expect_equal(resumed.student.parameters, unbroken.student.parameters);
  }
}

// In the warm-up, at its end (calibrated or not yet), in fine-tuning, at the last iteration.
INSTANTIATE_TEST_SUITE_P(At, Resume, ::testing::Values(0, 2, 3, 4, 9));

TEST(Run, RefusesTheCheckpointOfAnotherRecipe) {
  const test::TempFolder folder;
  Tiny tiny;
  auto job = tiny.job();
  job.checkpoint = folder / "state.safetensors";
  job.checkpoint_every = 4;
  Observer silent;
  run(job, silent);
  ASSERT_TRUE(std::filesystem::exists(job.checkpoint));
  tiny.options.crossing_rate = 0.5;
  auto other = tiny.job();
  other.checkpoint = folder / "state.safetensors";
  other.resume = true;
  try {
    run(other, silent);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("finetune.crossing_rate"), std::string::npos);
  }
}

TEST(Run, WithoutFineTuningItStillCalibrates) {
  for (const bool only_warmup : {false, true}) {
    Tiny tiny;
    only_warmup ? tiny.options.warmup = 1 : tiny.options.iterations = 0;
    const auto before = tiny.student.parameters.clone();
    Watch watch;
    const auto report = run(tiny.job(), watch);
    EXPECT_EQ(report.iterations, only_warmup ? 10 : 0);
    EXPECT_TRUE(tiny.student.parameters.at("conv1.w").equal(before.at("conv1.w")));
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

TEST(MeasureAgreement, ComparesOnImagesThatTrainingNeverDraws) {
  auto eight = four_bits();
  eight.weights.num_bits = eight.activations.num_bits = 8;
  Tiny tiny(1, eight);
  tiny.options.iterations = 0;
  Observer silent;
  run(tiny.job(), silent);
  const auto close =
      measure_agreement(tiny.teacher, tiny.student, held_out_images(tiny.generator, 100));
  EXPECT_EQ(close.images, 100);
  EXPECT_GT(close.agreement, 0.95);
  EXPECT_LT(close.kl, 1e-2);

  // A student that always answers the same class: agreement is that class's share.
  tiny.student.parameters.at("fc.b").copy_(at::zeros({4})).select(0, 2).fill_(1e3);
  const auto draw = tiny.generator.draw(64, generator::Generator::kHeldOutSteps);
  const auto answers = models::execute(tiny.teacher.graph, tiny.teacher.parameters,
                                       tiny.generator.forward(draw).detach())
                           .argmax(1);
  const auto fixed =
      measure_agreement(tiny.teacher, tiny.student, held_out_images(tiny.generator, 64));
  EXPECT_NEAR(fixed.agreement, answers.eq(2).to(at::kDouble).mean().item<double>(), 1e-9);
  EXPECT_GT(fixed.kl, close.kl);
}

}  // namespace
}  // namespace zsq::train
