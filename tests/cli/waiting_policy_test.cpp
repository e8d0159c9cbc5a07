// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.h"

namespace zsq {
namespace {

// What libgomp says that it found in its environment.
class WaitingPolicy : public Cli {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "not in builds with a sanitizer";
#endif
    if (spins("").empty()) GTEST_SKIP() << "the OpenMP runtime is not libgomp";
  }
  std::string spins(const std::string& variables) const {
    const std::string program =
        "env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose " + variables + " " +
        ZSQ_BINARY;
    const Outcome outcome = run("--version", program.c_str());
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find("zsq "), std::string::npos) << outcome.out;
    const std::string name = "GOMP_SPINCOUNT = '";
    const auto begin = outcome.err.find(name);
    if (begin == std::string::npos) return "";
    const auto value = begin + name.size();
    return outcome.err.substr(value, outcome.err.find('\'', value) - value);
  }
};

TEST_F(WaitingPolicy, IsBounded) { EXPECT_EQ(spins(""), "2000"); }

TEST_F(WaitingPolicy, IsTheUsersWhereTheySetIt) {
  EXPECT_EQ(spins("GOMP_SPINCOUNT=7"), "7");
  EXPECT_EQ(spins("OMP_WAIT_POLICY=passive"), "0");
}

TEST_F(WaitingPolicy, LeavesArgumentsAndVariablesAsTheyAre) {
  expect_error(2, "inspect 'no such file.onnx'", {"no such file.onnx"});
  std::string variables;
  for (int i = 0; i < 300; ++i) variables += "ZSQ_TEST_" + std::to_string(i) + "=1 ";
  EXPECT_EQ(spins(variables), "2000");
}

}  // namespace
}  // namespace zsq
