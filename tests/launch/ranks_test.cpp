// SPDX-License-Identifier: Apache-2.0
// The program under mpirun.
#include "launch/ranks.h"

#include <signal.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "formats/safetensors.h"
#include "tests/cli/program.h"

namespace zsq {
namespace {

using std::chrono::milliseconds;

class MpiRun : public Cli {
 protected:
  void SetUp() override {
    if (launch::mpi_version() == "none") GTEST_SKIP() << "built without MPI";
    if (!fs::exists(ZSQ_MPIRUN)) GTEST_SKIP() << "no mpirun: '" ZSQ_MPIRUN "'";
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  }

  static std::string of_ranks(int n) { return " -n " + std::to_string(n) + " "; }

  Outcome run_ranks(int n, const std::string& arguments) const {
    return run(of_ranks(n) + ZSQ_BINARY " " + arguments, ZSQ_MPIRUN);
  }

  pid_t start_ranks(int n, const std::string& arguments) const {
    const pid_t child = fork();
    if (child != 0) return child;
    const std::string line = "exec " ZSQ_MPIRUN + of_ranks(n) + ZSQ_BINARY " " + arguments + " >" +
                             path("stdout") + " 2>" + path("stderr");
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }

  // The processes of a running mpirun, in the order of ranks.
  static std::vector<pid_t> ranks_of(pid_t mpirun) {
    const std::string number = std::to_string(mpirun);
    std::istringstream children(text_of("/proc/" + number + "/task/" + number + "/children"));
    std::map<std::string, pid_t> by_rank;
    for (pid_t child; children >> child;) {
      const std::string environment = text_of("/proc/" + std::to_string(child) + "/environ");
      const std::string name = "OMPI_COMM_WORLD_RANK=";
      const auto place = environment.find(name);
      if (place != std::string::npos) by_rank[environment.substr(place + name.size(), 1)] = child;
    }
    std::vector<pid_t> ranks;
    for (const auto& [rank, child] : by_rank) ranks.push_back(child);
    return ranks;
  }

  static void wait_for(const fs::path& file, pid_t process) {
    while (!fs::exists(file) && waitpid(process, nullptr, WNOHANG) == 0)
      std::this_thread::sleep_for(milliseconds(5));
    ASSERT_TRUE(fs::exists(file)) << file;
  }

  static int code_at_end_of(pid_t process) {
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string training(const std::string& name, int iterations) const {
    return "quantize " + tiny().model.string() + kShort + " -o " + path(name) +
           " --recipe deploy --set finetune.iterations=" + std::to_string(iterations) +
           " --set process.checkpoint_every=3 --set finetune.validation_images=16";
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

void expect_same_files(const fs::path& a, const fs::path& b) {
  for (const char* file : {"model.onnx", "model.safetensors"})
    EXPECT_TRUE(formats::read_file(a / file) == formats::read_file(b / file)) << file;
}

TEST_F(MpiRun, OfTwoRanksGivesWhatOneGives) {
  ASSERT_EQ(run(training("one", 30)).code, 0);
  const Outcome two = run_ranks(2, training("two", 30) + " --format json");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(count(two.out, "\"tool_version\""), 1u);  // one report
  EXPECT_EQ(count(two.err, "stage 1 of"), 1u) << two.err;
  const auto report = [&](const char* name) {
    return nlohmann::json::parse(text_of(folder_ / name / "report.json"));
  };
  EXPECT_NEAR(report("one")["agreement"].get<double>(), report("two")["agreement"].get<double>(),
              0.1);
  const auto one_file = formats::read_safetensors(folder_ / "one" / "model.safetensors"),
             two_file = formats::read_safetensors(folder_ / "two" / "model.safetensors");
  ASSERT_EQ(one_file.tensors.size(), two_file.tensors.size());
  for (std::size_t i = 0; i < one_file.tensors.size(); ++i) {
    const auto& [name, a] = one_file.tensors[i];
    const auto& b = two_file.tensors[i].second;
    ASSERT_EQ(a.shape, b.shape) << name;
    if (a.dtype != formats::DType::f32) continue;
    const auto x = a.as<float>(), y = b.as<float>();
    for (std::size_t j = 0; j < x.size(); ++j)
      ASSERT_NEAR(x[j], y[j], 1e-2 * std::abs(x[j]) + 1e-3) << name << " " << j;
  }
}

TEST_F(MpiRun, OfTwoRanksMakesTheImagesOfOne) {
  const auto generate = [&](const char* name) {
    return "generate " + tiny().model.string() + " -n 12 --form safetensors -o " + path(name) +
           " --threads 1 --set generate.images.batch_size=4 --set generate.images.steps=5";
  };
  ASSERT_EQ(run(generate("one")).code, 0);
  const Outcome two = run_ranks(2, generate("two"));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(count(two.out, "wrote"), 1u) << two.out;
  EXPECT_TRUE(formats::read_file(folder_ / "one" / "bank.safetensors") ==
              formats::read_file(folder_ / "two" / "bank.safetensors"));
}

// What one rank finds ends all, though the other waits for it.
TEST_F(MpiRun, EndsWithTheRankThatFails) {
  fs::create_directory(folder_ / "elsewhere");
  fs::copy(tiny().model, folder_ / "model.onnx");
  const std::string zsq = " -n 1 -wdir ", rest = ZSQ_BINARY " quantize model.onnx -o " +
                                                 path("out") + kShort + " --recipe deploy";
  const Outcome outcome =
      run(zsq + folder_.path().string() + " " + rest + " :" + zsq + path("elsewhere") + " " + rest,
          ZSQ_MPIRUN);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("zsq: rank 1 of 2: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("model.onnx"), std::string::npos) << outcome.err;
}

TEST_F(MpiRun, RefusesRanksWithDifferentArguments) {
  const std::string line = ZSQ_BINARY " " + training("out", 20);
  const Outcome outcome = run(" -n 1 " + line + " : -n 1 " + line + " --seed 3", ZSQ_MPIRUN);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(count(outcome.err, "different arguments"), 1u) << outcome.err;
  EXPECT_EQ(run_ranks(2, training("out", 20) + " --time_budget 60s").code, 2);
}

class MpiRunThat : public MpiRun, public ::testing::WithParamInterface<int> {};

TEST_P(MpiRunThat, GetsASignalGoesOnFromItsCheckpoint) {
  ASSERT_EQ(run_ranks(2, training("unbroken", 90)).code, 0);
  const pid_t mpirun = start_ranks(2, training("broken", 90));
  wait_for(folder_ / "broken" / "checkpoint" / "state.safetensors", mpirun);
  const auto ranks = ranks_of(mpirun);
  ASSERT_EQ(ranks.size(), 2u);
  if (GetParam() == SIGTERM) kill(ranks[0], SIGTERM);
  kill(ranks[1], GetParam());
  const int code = code_at_end_of(mpirun);
  const std::string said = text_of(path("stderr"));
  EXPECT_EQ(code, GetParam() == SIGTERM ? 75 : 128 + SIGKILL) << said;
  EXPECT_EQ(count(said, "zsq: stopped after"), GetParam() == SIGTERM ? 1u : 0u) << said;
  EXPECT_TRUE(fs::exists(folder_ / "broken" / "checkpoint" / "state.safetensors"));

  const Outcome alone = run(training("broken", 90) + " --resume");
  EXPECT_EQ(alone.code, 2) << alone.err;  // one rank sums in another order
  const Outcome resumed = run_ranks(2, training("broken", 90) + " --resume");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_same_files(folder_ / "broken", folder_ / "unbroken");
}

INSTANTIATE_TEST_SUITE_P(By, MpiRunThat, ::testing::Values(SIGTERM, SIGKILL));

TEST_F(MpiRun, GivesUpOnARankThatHangs) {
  setenv("ZSQ_RANK_TIMEOUT", "2", 1);
  const pid_t mpirun = start_ranks(2, training("out", 100000));
  unsetenv("ZSQ_RANK_TIMEOUT");
  const auto state = folder_ / "out" / "checkpoint" / "state.safetensors";
  wait_for(state, mpirun);
  const auto ranks = ranks_of(mpirun);
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[1], SIGSTOP);
  std::this_thread::sleep_for(milliseconds(2500));
  kill(ranks[1], SIGCONT);  // so that mpirun, too, can end it
  EXPECT_EQ(code_at_end_of(mpirun), 1);
  EXPECT_NE(text_of(path("stderr")).find("waited 2 s for the other ranks"), std::string::npos);
  EXPECT_TRUE(fs::exists(state));
}

}  // namespace
}  // namespace zsq
