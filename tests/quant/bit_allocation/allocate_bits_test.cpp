// SPDX-License-Identifier: Apache-2.0
#include "quant/bit_allocation/allocate_bits.h"

#include <gtest/gtest.h>

#include <random>

namespace zsq::quant {
namespace {

using Groups = std::vector<std::vector<BitChoice>>;

// Every combination, one after the other.
std::optional<Allocation> brute_force(const Groups& groups, std::int64_t budget) {
  std::optional<Allocation> best;
  std::vector<std::size_t> at(groups.size(), 0);
  while (true) {
    Allocation a{at, 0, 0};
    for (std::size_t g = 0; g < groups.size(); ++g) {
      a.cost += groups[g][at[g]].cost;
      a.sensitivity += groups[g][at[g]].sensitivity;
    }
    if (a.cost <= budget && (!best || a.sensitivity < best->sensitivity ||
                             (a.sensitivity == best->sensitivity && a.cost < best->cost)))
      best = a;
    std::size_t g = 0;
    while (g < groups.size() && ++at[g] == groups[g].size()) at[g++] = 0;
    if (g == groups.size()) return best;
  }
}

TEST(AllocateBits, WorkedByHand) {
  // 10 to spend: 4 + 6 leaves 1 + 2 = 3 of sensitivity; the greedy 8 + 2 would leave 0.5 + 9.
  const Groups groups{{{2, 7}, {4, 1}, {8, 0.5}}, {{2, 9}, {6, 2}, {8, 1.5}}};
  const auto found = allocate_bits(groups, 10);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->chosen, (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(found->cost, 10);
  EXPECT_EQ(found->sensitivity, 3);
}

// Whole numbers as sensitivities, so that sums are exact and many of them are equal.
TEST(AllocateBits, EqualsBruteForce) {
  std::mt19937_64 engine(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const auto draw = [&](int lo, int hi) {
      return std::uniform_int_distribution<int>(lo, hi)(engine);
    };
    Groups groups(static_cast<std::size_t>(draw(1, 5)));
    std::int64_t most = 0;
    const bool falling =
        draw(0, 1);  // sensitivities that fall with costs, as those of bits mostly do
    for (auto& group : groups) {
      group.resize(static_cast<std::size_t>(draw(1, 6)));
      const int weight = draw(1, 9);
      std::int64_t cost = 0;
      int sensitivity = 400;
      for (auto& choice : group) {
        cost += weight;
        sensitivity -= draw(0, sensitivity / 2);
        choice = falling ? BitChoice{cost, static_cast<double>(sensitivity)}
                         : BitChoice{draw(0, 12), static_cast<double>(draw(0, 12))};
        most = std::max(most, choice.cost);
      }
    }
    const std::int64_t budget = draw(0, static_cast<int>(most) * static_cast<int>(groups.size()));
    const auto expected = brute_force(groups, budget);
    const auto found = allocate_bits(groups, budget);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "trial " << trial;
    EXPECT_EQ(expected.has_value(), budget >= least_cost(groups));
    if (!expected) continue;
    EXPECT_EQ(found->sensitivity, expected->sensitivity) << "trial " << trial;
    EXPECT_EQ(found->cost, expected->cost) << "trial " << trial;
    std::int64_t cost = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) cost += groups[g][found->chosen[g]].cost;
    EXPECT_EQ(cost, found->cost);
  }
}

// Sixty layers of seven widths, sensitivities that are no round numbers: 7^60 combinations. More
// budget is never worse, and all of it buys the best of each.
TEST(AllocateBits, LargeNetworksAreSolved) {
  std::mt19937_64 engine(2);
  std::lognormal_distribution<double> spread(0, 2);
  Groups groups(60);
  std::int64_t most = 0;
  double least = 0;
  for (auto& group : groups) {
    const auto weights = static_cast<std::int64_t>(1000 * spread(engine)) + 100;
    const double sensitivity = spread(engine);
    for (std::int64_t bits = 2; bits <= 8; ++bits)
      group.push_back({weights * bits, sensitivity * spread(engine) / double(1 << (2 * bits))});
    most += weights * 8;
    double smallest = group[0].sensitivity;
    for (const auto& choice : group) smallest = std::min(smallest, choice.sensitivity);
    least += smallest;
  }
  double before = std::numeric_limits<double>::infinity();
  for (std::int64_t budget = most / 4; budget <= most; budget += most / 16) {
    const auto found = allocate_bits(groups, budget);
    ASSERT_TRUE(found);
    EXPECT_LE(found->cost, budget);
    EXPECT_LE(found->sensitivity, before);
    before = found->sensitivity;
  }
  EXPECT_NEAR(allocate_bits(groups, most)->sensitivity, least, 1e-12 * least);
}

}  // namespace
}  // namespace zsq::quant
