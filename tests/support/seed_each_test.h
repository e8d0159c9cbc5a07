// SPDX-License-Identifier: Apache-2.0
// Include it and every test of the program draws the same numbers on every run and in every order:
// libtorch seeds its default generator differently in each process.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace zsq::test {

class SeedEachTest : public testing::EmptyTestEventListener {
  // at::manual_seed() would ask about CUDA, which has to be loaded before anything asks.
  void OnTestStart(const testing::TestInfo&) override {
    at::Generator(at::detail::getDefaultCPUGenerator()).set_current_seed(1);
  }
};
inline const bool seeds_each_test = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new SeedEachTest);
  return true;
}();

}  // namespace zsq::test
