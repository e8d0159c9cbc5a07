// SPDX-License-Identifier: Apache-2.0
// Training on an emulated device whose streams are watched: the student's half of an iteration may
// run beside the generator's next half, and all that needs one of them waits for it.
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/side_stream.h"
#include "tests/support/emulated_cuda/stream_order.h"
#include "tests/support/quantized.h"
#include "tests/support/seed_each_test.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"
#include "train/graph_step.h"
#include "train/images/image_bank.h"

namespace zsq::train::two_streams_test {
namespace {

struct OnDevice : Tiny {
  OnDevice() {
    for (const auto& name : teacher.parameters.names())
      teacher.parameters.set(name, teacher.parameters.at(name).to(at::kCUDA));
    student = test::quantized(teacher, four_bits());
    generator = generator::Generator(teacher, {}, seed);
    options.iterations = 18;
  }
};

using Change = std::function<void(TrainJob&)>;
const std::vector<std::pair<const char*, Change>> kVariants = {
    {"defaults", [](TrainJob&) {}},
    {"checks of held-out images", [](TrainJob& job) { job.options.validation_checks = 5; }},
    {"a student that goes back",
     [](TrainJob& job) {
       job.options.validation_checks = 5;
       job.options.backtracking = 0.5;
       job.options.affine_lr = 1;
       job.options.learnable_scales = LearnableScales::all;
     }},
    {"learnable scales and features",
     [](TrainJob& job) {
       job.options.learnable_scales = LearnableScales::all;
       job.options.loss_terms = {{LossTerm::kl_divergence, 1},
                                 {LossTerm::feature_mse, 1},
                                 {LossTerm::perturbed_kl_divergence, 1},
                                 {LossTerm::pseudo_label_cross_entropy, 1}};
     }},
    {"low-pass images", [](TrainJob& job) { job.options.low_pass_cutoff = 3; }},
    {"several views", [](TrainJob& job) { job.options.teacher_views = 3; }},
    {"every iteration is read", [](TrainJob& job) { job.read_every = 1; }},
};

// graph_step_test.cpp compares what is learned with and without recordings.
void expect_no_races(const Change& change) {
  OnDevice run;
  auto job = run.job();
  change(job);
  Observer silent;
  const test::StreamOrder order;
  train::run(job, silent);
  EXPECT_EQ(order.races(), std::vector<std::string>());
}

TEST(TwoStreams, WaitForEachOther) {
  for (const auto& [name, change] : kVariants) {
    SCOPED_TRACE(name);
    expect_no_races(change);
  }
}

TEST(TwoStreams, WaitForBanksAndCheckpoints) {
  const test::TempFolder folder;
  const BankDraws bank({at::randn({20, 3, 8, 8}), {}}, 0.25, {}, 1);
  expect_no_races([&](TrainJob& job) {
    job.bank = &bank;
    job.checkpoint = folder / "checkpoint";
    job.checkpoint_every = 7;
  });
}

TEST(TwoStreams, TheGeneratorDoesNotWaitForTheStudent) {
  OnDevice run;
  const test::StreamOrder order;
  Step step(run.teacher, run.student, run.generator, run.options);
  Observer silent;
  GraphStep steps(
      step, [] { return cuda_kernels::make_device_graph(at::kCUDA); }, silent);
  step.calibrate();
  for (std::uint64_t i = 0; i < 8; ++i) {
    const auto batch = steps.generator_step(i, 1);
    steps.student_step(batch, 1);
    const bool recorded = i >= 3;
    EXPECT_EQ(test::current_stream_is_last(), !recorded) << i;
  }
  steps.join();
  EXPECT_TRUE(test::current_stream_is_last());
}

// The watch itself: what it must find.
TEST(StreamOrder, FindsAccessesThatDoNotWait) {
  const at::Tensor x = at::zeros({4}, at::device(at::kCUDA).dtype(at::kFloat));
  const models::SideStream side(at::kCUDA);
  const auto races_of = [&](const auto& f) {
    const test::StreamOrder order;
    x.add_(1);
    f();
    return order.races().size();
  };
  const auto on_side = [&](const auto& f) {
    const auto here = side.enter();
    f();
  };
  EXPECT_EQ(races_of([&] { on_side([&] { x.add(1); }); }), 1u);
  EXPECT_EQ(races_of([&] {
              side.wait_for_current();
              on_side([&] { x.add(1); });
            }),
            0u);
  EXPECT_EQ(races_of([&] {
              side.wait_for_current();
              on_side([&] { x.add_(1); });
              x.add(1);
            }),
            1u);
  EXPECT_EQ(races_of([&] {
              side.wait_for_current();
              on_side([&] { x.add_(1); });
              side.join();
              x.add(1);
            }),
            0u);
  EXPECT_EQ(races_of([&] {  // both read
              side.wait_for_current();
              x.add(1);
              on_side([&] { x.add(1); });
            }),
            0u);
}

TEST(StreamOrder, FindsMemoryThatIsGivenBackInUse) {
  const models::SideStream side(at::kCUDA);
  for (const bool told : {false, true}) {
    const test::StreamOrder order;
    at::Tensor x = at::zeros({4}, at::device(at::kCUDA).dtype(at::kFloat));
    side.wait_for_current();
    {
      const auto here = side.enter();
      x.add(1);
      if (told) x.record_stream(side.current());
    }
    x = at::Tensor();
    EXPECT_EQ(order.races().size(), told ? 0u : 1u);
  }
}

}  // namespace
}  // namespace zsq::train::two_streams_test
