// SPDX-License-Identifier: Apache-2.0
// The program as a person meets it: exit codes, messages, files.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_files.h"

namespace zsq {

namespace fs = std::filesystem;

inline std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Cli : public ::testing::Test {
 protected:
  Outcome run(const std::string& arguments, const char* program = ZSQ_BINARY) const {
    const std::string command = std::string(program) + " " + arguments + " >" + path("stdout") +
                                " 2>" + path("stderr") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(path("stdout")),
            text_of(path("stderr"))};
  }

  // Runs, expects the exit code and that the message on stderr holds every part.
  void expect_error(int code, const std::string& arguments,
                    std::initializer_list<std::string> parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << "\n" << outcome.err;
  }

  // Starts the program and leaves it running.
  pid_t start(const std::string& arguments) const {
    const pid_t child = fork();
    if (child != 0) return child;
    const std::string line =
        "exec " ZSQ_BINARY " " + arguments + " >" + path("stdout") + " 2>" + path("stderr");
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.file(name, text).string();
  }

  test::TempFolder folder_;
};

using test::tiny;

inline const std::string kShort =
    " --set finetune.iterations=20 --set finetune.images=0 --set finetune.batch_size=16"
    " --set finetune.warmup=0.5"
    " --set quantize.activations.calibration_images=64 --set process.agreement_images=64 --threads "
    "1";

}  // namespace zsq
