// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <thread>

#include "formats/atomic_file.h"
#include "tests/cli/program.h"

namespace zsq {
namespace {

class Stopped : public Cli, public ::testing::WithParamInterface<int> {};

TEST_P(Stopped, ExitsWith75AndTheCheckpointKnowsItsRun) {
  const std::string command = "quantize " + tiny().model.string() + " -o " + path("out") + kShort;
  const pid_t child = start(command + " --set finetune.iterations=100000");
  // Once progress is reported, the loop runs.
  while (text_of(path("stderr")).find("warm-up") == std::string::npos &&
         waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  expect_error(2, command, {"another run writes to"});
  kill(child, GetParam());
  if (GetParam() == SIGTERM) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // or both become one
    kill(child, SIGTERM);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 75) << text_of(path("stderr"));
  EXPECT_TRUE(fs::exists(folder_ / "out" / "checkpoint"));
  expect_error(2, command + " --resume", {"finetune.iterations = 100000, this run has 20"});
  const Outcome anew =
      run("quantize " + tiny().model.string() + " -o " + path("new") + kShort + " --resume");
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_NE(anew.err.find("nothing to resume"), std::string::npos) << anew.err;
}

INSTANTIATE_TEST_SUITE_P(By, Stopped, ::testing::Values(SIGINT, SIGTERM));

TEST_F(Cli, ARunThatWasKilledGoesOnFromItsLastCheckpoint) {
  const std::string command = "quantize " + tiny().model.string() + kShort +
                              " --set finetune.iterations=150 --set process.checkpoint_every=3";
  ASSERT_EQ(run(command + " -o " + path("unbroken")).code, 0);
  const pid_t child = start(command + " -o " + path("killed"));
  while (!fs::exists(folder_ / "killed" / "checkpoint" / "state.safetensors") &&
         waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << text_of(path("stderr"));
  EXPECT_FALSE(fs::exists(folder_ / "killed" / "model.onnx"));

  const Outcome resumed = run(command + " --resume -o " + path("killed"));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  for (const char* file : {"model.onnx", "model.safetensors"})
    EXPECT_TRUE(formats::read_file(folder_ / "killed" / file) ==
                formats::read_file(folder_ / "unbroken" / file))
        << file;
  EXPECT_FALSE(fs::exists(folder_ / "killed" / "checkpoint"));
}

}  // namespace
}  // namespace zsq
