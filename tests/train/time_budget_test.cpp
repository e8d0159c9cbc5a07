// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/randn.h>

#include <functional>

#include "core/error.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"
#include "train/checkpoint.h"
#include "train/images/image_bank.h"

namespace zsq::train {
namespace {

TEST(TimeBudget, EndsTheRunAtTheEndOfItsSchedule) {
  const test::TempFolder folder;
  Tiny tiny;
  tiny.options.iterations = 1'000'000'000;
  auto job = tiny.job();
  job.checkpoint = folder / "state.safetensors";
  job.time_budget = 1;
  Watch watch;
  const auto report = run(job, watch);
  EXPECT_LT(report.iterations, 1'000'000'000);
  EXPECT_EQ(report.iterations, std::ssize(watch.seen));
  EXPECT_EQ(load(job.checkpoint, settings_of(job), at::kCPU).tally.iterations, report.iterations);

  // Used up, however slow the machine is, it lets a resumed run only finish.
  Tiny again;
  again.options.iterations = 1'000'000'000;
  auto rest = again.job();
  rest.checkpoint = job.checkpoint;
  rest.resume = true;
  rest.time_budget = 1e-3;
  Observer silent;
  EXPECT_EQ(run(rest, silent).iterations, report.iterations);
  expect_equal(again.student.parameters, tiny.student.parameters);
}

// A budget that does not bind changes nothing: the rehearsal leaves no trace, also in a run that is
// resumed.
TEST(TimeBudget, WhereItDoesNotBindGivesTheSameResult) {
  Tiny plain, planned, broken, resumed;
  Observer silent;
  run(plain.job(), silent);
  auto job = planned.job();
  job.time_budget = 1e6;
  int asked = 0;
  job.seconds_after = [&] { return static_cast<double>(++asked); };
  run(job, silent);
  EXPECT_EQ(asked, 2);
  expect_equal(planned.student.parameters, plain.student.parameters);

  const test::TempFolder folder;
  Watch stopper;
  stopper.stop_after = 6;
  auto first = broken.job();
  first.checkpoint = folder / "state.safetensors";
  EXPECT_THROW(run(first, stopper), Error);
  auto second = resumed.job();
  second.checkpoint = first.checkpoint;
  second.resume = true;
  second.time_budget = 1e6;
  run(second, silent);
  expect_equal(resumed.student.parameters, plain.student.parameters);
}

// Of images that are given and few, checks take next to nothing, whatever number a generator would
// have made for them.
TEST(TimeBudget, SetsAsideWhatChecksOfTheGivenImagesTake) {
  const BankDraws bank({at::randn({20, 3, 8, 8}), {}}, 1, {}, 1);
  const auto iterations = [&](bool given) {
    Tiny tiny;
    tiny.options.validation_checks = 1;
    tiny.options.validation_images = 1'000'000'000;
    auto job = tiny.job();
    job.bank = &bank;
    if (given) job.held_out = at::randn({4, 3, 8, 8});
    job.time_budget = 600;
    Observer silent;
    return run(job, silent).iterations;
  };
  EXPECT_EQ(iterations(true), 10);
  EXPECT_EQ(iterations(false), 0);
}

TEST(TimeBudget, SaysWhatABudgetLeavesRoomFor) {
  struct Listener : Observer {
    void on_message(LogLevel level, const std::string& message) override {
      if (level == LogLevel::warning) warning = message;
    }
    std::string warning;
  } listener;
  Tiny tiny;
  auto job = tiny.job();
  job.time_budget = 1e-6;
  EXPECT_EQ(run(job, listener).iterations, 0);
  EXPECT_NE(listener.warning.find("leaves 0 iterations"), std::string::npos) << listener.warning;
}

// Of images that are all there before, a generator's weights change nothing.
TEST(Trainer, NeedsNoGeneratorForImagesThatAreThere) {
  const BankDraws bank({test::normal({20, 3, 8, 8}, 3), {}}, /*share=*/1, {}, 1);
  const auto trained = [&](bool weights) {
    Tiny tiny;
    tiny.generator = generator::Generator(tiny.teacher, {}, 1, weights);
    auto job = tiny.job();
    job.bank = &bank;
    Observer silent;
    run(job, silent);
    EXPECT_EQ(tiny.generator.parameters().empty(), !weights);
    return tiny.student.parameters;
  };
  expect_equal(trained(true), trained(false));
}

}  // namespace
}  // namespace zsq::train
