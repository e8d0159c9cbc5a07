// SPDX-License-Identifier: Apache-2.0
#include "train/graph_step.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "cuda_kernels/device.h"
#include "tests/support/quantized.h"
#include "tests/support/seed_each_test.h"
#include "tests/train/tiny.h"
#include "train/images/image_bank.h"

namespace zsq::train::graph_step_test {
namespace {

using cuda_kernels::DeviceGraph;
using Body = std::function<void()>;

// What a recording does as seen from the memory that it reads and writes: the body that was
// recorded runs again, whatever has been asked for since.
struct Rerun : DeviceGraph {
  explicit Rerun(int* recordings) : recordings_(recordings) {}
  void warm_up(const Body& body) override { body(); }
  void record(const Body& body) override {
    body_ = body;
    ++*recordings_;
  }
  void replay() override { body_(); }

  int* recordings_;
  Body body_;
};

struct Refusing : DeviceGraph {
  void warm_up(const Body& body) override { body(); }
  void record(const Body&) override { throw Error(ErrorCode::internal, "no recording here"); }
  void replay() override { FAIL(); }
};

struct Listener : Observer {
  void on_message(LogLevel, const std::string& message) override { messages.push_back(message); }
  std::vector<std::string> messages;
};

// Six iterations of warm-up, then six of fine-tuning, with a milestone in the middle of each.
struct Outcome {
  std::vector<double> numbers;
  NamedTensors state;
};
Outcome run_with(const GraphStep::MakeGraph& make, Observer& observer,
                 const BankDraws* bank = nullptr) {
  Tiny tiny;
  tiny.options.learnable_scales = LearnableScales::activations;
  Step step(tiny.teacher, tiny.student, tiny.generator, tiny.options);
  GraphStep steps(step, make, observer);
  Outcome outcome;
  for (std::uint64_t i = 0; i < 14; ++i) {
    if (i == 6) step.calibrate();
    const double factor = i < 4 ? 1 : i < 12 ? 0.1 : 0.01;
    auto batch = steps.generator_step(i, factor);
    outcome.numbers.push_back(batch.loss.item<double>());
    if (i < 6) continue;
    if (bank) batch = bank->mixed(batch, tiny.teacher, {}, i);
    const auto student = steps.student_step(batch, factor);
    outcome.numbers.push_back(student.loss.item<double>());
    outcome.numbers.push_back(student.agreement.item<double>());
  }
  for (const auto& [name, tensor] : step.state())
    outcome.state.emplace_back(name, tensor.detach().clone());
  return outcome;
}

void expect_equal(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.numbers, b.numbers);
  ASSERT_EQ(a.state.size(), b.state.size());
  for (std::size_t i = 0; i < a.state.size(); ++i)
    EXPECT_TRUE(a.state[i].second.equal(b.state[i].second)) << a.state[i].first;
}

TEST(GraphStep, ReplaysGiveWhatStepsGive) {
  Listener listener;
  int recordings = 0;
  const auto make = [&] { return std::make_unique<Rerun>(&recordings); };
  expect_equal(run_with(make, listener), run_with(nullptr, listener));
  // The generator's with each of three rates, the student's (which begins with the second) twice.
  EXPECT_EQ(recordings, 5);
  EXPECT_TRUE(listener.messages.empty());
}

TEST(GraphStep, TakesBatchesThatWereMixedInBetween) {
  Listener listener;
  int recordings = 0;
  const auto make = [&] { return std::make_unique<Rerun>(&recordings); };
  const BankDraws bank({at::randn({20, 3, 8, 8}), {}}, 0.5, {}, 1);
  expect_equal(run_with(make, listener, &bank), run_with(nullptr, listener, &bank));
}

TEST(GraphStep, GoesOnWithoutRecordingAndSaysSo) {
  Listener listener, silent;
  const auto make = [] { return std::make_unique<Refusing>(); };
  expect_equal(run_with(make, listener), run_with(nullptr, silent));
  ASSERT_EQ(listener.messages.size(), 1u);
  EXPECT_NE(listener.messages[0].find("no recording here"), std::string::npos);
}

// A run on a GPU, and how many lines tell that it was not recorded.
std::pair<at::Tensor, int> run_on_gpu(bool graphs, Inundation inundation) {
  Tiny tiny;
  const auto move = [](models::ParameterStore& store) {
    for (const auto& name : store.names()) store.set(name, store.at(name).to(at::kCUDA));
  };
  move(tiny.teacher.parameters);
  tiny.student = test::quantized(tiny.teacher, four_bits());
  tiny.generator = generator::Generator(tiny.teacher, {}, tiny.seed);
  tiny.options.iterations = 40;
  if (!graphs) tiny.options.cuda_graphs = false;  // recording is the default
  tiny.options.inundation = inundation;
  Listener listener;
  run(tiny.job(), listener);
  int refusals = 0;
  for (const auto& message : listener.messages)
    refusals += message.find("cuda_graphs") != std::string::npos;
  return {tiny.student.parameters.at("conv2.weight").cpu(), refusals};
}

// Sums in another order from run to run would show: a weight that crosses a threshold or not is a
// step of its grid.
struct Deterministic {
  Deterministic() { set(true); }
  ~Deterministic() { set(false); }
  static void set(bool on) {
    at::globalContext().setDeterministicCuDNN(on);
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/true);
  }
};

TEST(GraphStep, OnAGpuReplaysGiveWhatStepsGive) {
  std::string why;
  if (!cuda_kernels::cuda_available(&why)) GTEST_SKIP() << why;
  cuda_kernels::load_cuda();
  const Deterministic scope;
  for (const auto how : {Inundation::exact, Inundation::off, Inundation::published}) {
    const auto [plain, nothing_to_say] = run_on_gpu(false, how);
    const auto [replayed, refusals] = run_on_gpu(true, how);
    EXPECT_LT((plain - replayed).abs().max().item<float>(), 1e-4);
    EXPECT_EQ(nothing_to_say, 0);
    EXPECT_EQ(refusals, how == Inundation::published);  // reads back: goes on without, and says so
  }
}

}  // namespace
}  // namespace zsq::train::graph_step_test
