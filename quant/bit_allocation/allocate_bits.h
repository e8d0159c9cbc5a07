// SPDX-License-Identifier: Apache-2.0
// One choice per group under a budget: the multiple-choice knapsack, solved exactly.
//   minimise sum_g sensitivity(g, c_g)  subject to  sum_g cost(g, c_g) <= budget
// Partial choices, group by group; of those one is dropped that another one equals or beats in cost
// and in sensitivity, or that cannot become better than a known solution: the bound is the linear
// relaxation of the groups to come, in which a group may take a mixture of two neighbouring choices
// on its lower convex hull (Sinha and Zoltners, Operations Research 27(3), 1979).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace zsq::quant {

struct BitChoice {
  std::int64_t cost = 0;   // >= 0, any unit
  double sensitivity = 0;  // finite
};

struct Allocation {
  std::vector<std::size_t> chosen;  // index in each group
  std::int64_t cost = 0;
  double sensitivity = 0;
};

// The least sensitivity; among solutions of the same sensitivity the cheapest, among those of the
// same cost too one and the same on every run. Nothing where even the cheapest choices pass the
// budget (see least_cost). Each group has a choice at least.
std::optional<Allocation> allocate_bits(const std::vector<std::vector<BitChoice>>& groups,
                                        std::int64_t budget);

std::int64_t least_cost(const std::vector<std::vector<BitChoice>>& groups);

}  // namespace zsq::quant
