// SPDX-License-Identifier: Apache-2.0
// Covers train/reconstruction/reconstruct: a run that ends early, and one that goes on.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/networks.h"
#include "tests/train/reconstruction/prepared.h"

namespace zsq::train {
namespace {

TEST(Reconstruct, EndsBlocksByTheClock) {
  Prepared p(test::residual_network(), bits(4, 4));
  p.time_budget = 1e-6;
  for (const auto& block : p.run(short_run()).blocks) EXPECT_EQ(block.iterations, 1);
  expect_decided(p.student);
}

TEST(Reconstruct, StopsWhenAsked) {
  Prepared p(test::residual_network(), bits(4, 4));
  Watch watch;
  watch.stop_after = 70;  // in the second block
  try {
    p.run(short_run(), watch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stopped);
    EXPECT_NE(std::string(error.what()).find("block 2 of 4"), std::string::npos) << error.what();
  }
  EXPECT_EQ(watch.seen.back().step, 70);
  EXPECT_EQ(watch.seen.back().total, 240);
}

void expect_same_blocks(const std::vector<BlockReport>& a, const std::vector<BlockReport>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].after, b[i].after) << a[i].name;
    EXPECT_EQ(a[i].iterations, b[i].iterations);
  }
}

// Stopped in any block, with what was reported last put into a new student.
TEST(Reconstruct, GoesOnToTheSameResult) {
  auto options = short_run();
  options.bias_lr = 0.1;
  Prepared unbroken(test::residual_network(), bits(2, 4));
  const auto expected = unbroken.run(options);
  for (const std::ptrdiff_t stop_after : {70, 130, 200}) {
    Prepared first(test::residual_network(), bits(2, 4));
    std::vector<BlockReport> done;
    models::ParameterStore kept;
    auto job = first.job(options);
    job.on_block_done = [&](const std::vector<BlockReport>& blocks) {
      done = blocks;
      kept = first.student.parameters.clone();
    };
    Watch watch;
    watch.stop_after = stop_after;
    EXPECT_THROW(reconstruct(job, watch), Error);
    ASSERT_EQ(std::ssize(done), stop_after / 60);
    Prepared second(test::residual_network(), bits(2, 4));
    for (const auto& name : kept.names()) second.student.parameters.set(name, kept.at(name));
    auto rest = second.job(options);
    rest.done = done;
    Watch seen;
    expect_same_blocks(reconstruct(rest, seen).blocks, expected.blocks);
    expect_equal(second.student.parameters, unbroken.student.parameters);
    EXPECT_EQ(std::ssize(seen.seen), 240 - 60 * std::ssize(done));
  }
}

}  // namespace
}  // namespace zsq::train
