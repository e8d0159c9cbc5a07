// SPDX-License-Identifier: Apache-2.0
// The same example in three languages: what it hands back, and that Ctrl-C ends it. The program and
// the Python package give the same bytes.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/sdk/job.h"

namespace zsq::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class FolderPipeline : public ::testing::TestWithParam<std::string> {
 protected:
  FolderPipeline() {
    setenv("ZSQ_LIBRARY", ZSQ_LIBRARY, 1);
    fs::create_directories(folder_ / "inbox");
    fs::copy_file(tiny().model, folder_ / "inbox" / "tiny.onnx");
  }

  pid_t start(const std::string& settings) const {
    const pid_t child = fork();
    if (child != 0) return child;
    const std::string line = "exec " + GetParam() + " " + path("inbox") + " " + path("outbox") +
                             " process.threads=1 data.preset=cifar10 " + settings + " >" +
                             path("stdout") + " 2>" + path("stderr");
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }

  int end_of(pid_t child) const {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string output() const { return text_of(path("stdout")) + text_of(path("stderr")); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TempFolder folder_;
};

// What the C interface gives if it is called directly.
std::string expected_model(const fs::path& output) {
  const Job job("instant");
  for (const auto& [key, value] :
       {std::pair{"process.threads", "1"}, {"data.preset", "cifar10"}, {"scheme", "W6A6"}})
    EXPECT_EQ(job.set(key, value).status, ZSQ_OK);
  EXPECT_EQ(job.quantize(tiny().model, output).status, ZSQ_OK);
  return text_of(output / "model.onnx");
}

TEST_P(FolderPipeline, RetriesWithMoreBitsAndHandsBackWhatPasses) {
  std::ofstream(folder_ / "inbox" / "damaged.onnx") << "no model";
  ASSERT_EQ(end_of(start("")), 0) << output();
  const std::string said = output();
  EXPECT_NE(said.find("tiny at W4A4\n"), std::string::npos) << said;
  EXPECT_NE(said.find("is below the 90"), std::string::npos) << said;
  EXPECT_NE(said.find("tiny at W6A6\n"), std::string::npos) << said;
  EXPECT_EQ(said.find("tiny at W8A8"), std::string::npos) << said;
  EXPECT_EQ(text_of(folder_ / "outbox" / "tiny" / "model.onnx"),
            expected_model(folder_ / "expected"));
  EXPECT_FALSE(fs::exists(folder_ / "outbox" / ".tiny"));
  EXPECT_NE(text_of(folder_ / "outbox" / "damaged.error").find("damaged.onnx"), std::string::npos);

  ASSERT_EQ(end_of(start("")), 0) << output();
  EXPECT_EQ(output(), "") << "what was handed back is not done again";
}

TEST_P(FolderPipeline, StopsOnCtrlC) {
  const pid_t child = start("finetune.iterations=100000 finetune.batch_size=16");
  while (text_of(path("stdout")).find("warm-up") == std::string::npos &&
         waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill(child, SIGINT);
  EXPECT_EQ(end_of(child), ZSQ_STOPPED) << output();
  EXPECT_FALSE(fs::exists(folder_ / "outbox" / "tiny"));
  EXPECT_FALSE(fs::exists(folder_ / "outbox" / "tiny.error"));
  EXPECT_TRUE(fs::exists(folder_ / "outbox" / ".tiny" / "checkpoint"));
}

INSTANTIATE_TEST_SUITE_P(In, FolderPipeline,
                         ::testing::Values(ZSQ_EXAMPLE_C, ZSQ_EXAMPLE_CPP, ZSQ_EXAMPLE_PYTHON));

TEST(SameBytes, FromTheShellAndFromPython) {
  const TempFolder folder;
  const std::string model = tiny().model, shell = (folder / "shell").string(),
                    python = (folder / "python").string();
  const std::string expected = expected_model(folder / "expected");
  ASSERT_FALSE(expected.empty());
  const std::string by_program =
      ZSQ_PROGRAM " quantize " + model + " -o " + shell +
      " --recipe instant --scheme W6A6 --preset cifar10 --threads 1 --quiet > /dev/null";
  ASSERT_EQ(std::system(by_program.c_str()), 0) << by_program;
  EXPECT_EQ(text_of(folder / "shell" / "model.onnx"), expected);
  setenv("ZSQ_LIBRARY", ZSQ_LIBRARY, 1);
  const std::string by_package = ZSQ_PYTHON " -c 'import zsq; zsq.quantize(\"" + model +
                                 "\", \"W6A6\", \"" + python +
                                 "\", recipe=\"instant\", preset=\"cifar10\", threads=1)'";
  ASSERT_EQ(std::system(by_package.c_str()), 0) << by_package;
  EXPECT_EQ(text_of(folder / "python" / "model.onnx"), expected);
}

}  // namespace
}  // namespace zsq::test
