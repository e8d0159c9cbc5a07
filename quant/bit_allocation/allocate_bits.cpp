// SPDX-License-Identifier: Apache-2.0
#include "quant/bit_allocation/allocate_bits.h"

#include <algorithm>
#include <cmath>

namespace zsq::quant {
namespace {

struct Option {
  std::int64_t cost;
  double sensitivity;
  std::size_t index;  // in the caller's group
};

// By rising cost and falling sensitivity: what no other choice equals or beats in both.
std::vector<Option> useful(const std::vector<BitChoice>& group) {
  std::vector<Option> options;
  for (std::size_t i = 0; i < group.size(); ++i)
    options.push_back({group[i].cost, group[i].sensitivity, i});
  std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.sensitivity < b.sensitivity;
  });
  std::vector<Option> kept;
  for (const Option& option : options)
    if (kept.empty() || option.sensitivity < kept.back().sensitivity) kept.push_back(option);
  return kept;
}

// A step along the lower convex hull of a group.
struct Step {
  std::size_t group;
  std::int64_t cost;
  double gain;
  std::size_t to;  // option that it leads to
  double rate() const { return gain / static_cast<double>(cost); }
};

void add_hull_steps(const std::vector<Option>& options, std::size_t group,
                    std::vector<Step>& steps) {
  for (std::size_t from = 0; from + 1 < options.size();) {
    Step best{group, 1, -1, 0};
    for (std::size_t to = from + 1; to < options.size(); ++to) {
      const Step step{group, options[to].cost - options[from].cost,
                      options[from].sensitivity - options[to].sensitivity, to};
      if (step.rate() >= best.rate()) best = step;
    }
    steps.push_back(best);
    from = best.to;
  }
}

// The linear relaxation of the groups from some group on.
class Relaxation {
 public:
  Relaxation(const std::vector<std::vector<Option>>& groups, std::size_t first) {
    for (std::size_t g = first; g < groups.size(); ++g) {
      cost_ += groups[g].front().cost;
      sensitivity_ += groups[g].front().sensitivity;
      add_hull_steps(groups[g], g, steps_);
    }
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const Step& a, const Step& b) { return a.rate() > b.rate(); });
    for (const Step& step : steps_) {
      costs_.push_back(costs_.back() + step.cost);
      gains_.push_back(gains_.back() + step.gain);
    }
  }

  std::int64_t least_cost() const { return cost_; }
  const std::vector<Step>& steps() const { return steps_; }

  // The least sensitivity that these groups can have for `budget` >= least_cost().
  double bound(std::int64_t budget) const {
    const std::int64_t rest = budget - cost_;
    const auto whole = static_cast<std::size_t>(
        std::upper_bound(costs_.begin(), costs_.end(), rest) - costs_.begin() - 1);
    double gain = gains_[whole];
    if (whole < steps_.size())
      gain += steps_[whole].rate() * static_cast<double>(rest - costs_[whole]);
    return sensitivity_ - gain;
  }

 private:
  std::int64_t cost_ = 0;
  double sensitivity_ = 0;
  std::vector<Step> steps_;
  std::vector<std::int64_t> costs_{0};  // of the first i steps
  std::vector<double> gains_{0};
};

// A solution to start from: the steps that still fit, best rate first.
double greedy_sensitivity(const std::vector<std::vector<Option>>& groups, const Relaxation& all,
                          std::int64_t budget) {
  std::vector<std::size_t> at(groups.size(), 0);
  std::int64_t rest = budget - all.least_cost();
  for (const Step& step : all.steps()) {
    const std::int64_t cost =
        groups[step.group][step.to].cost - groups[step.group][at[step.group]].cost;
    if (cost > rest) continue;
    rest -= cost;
    at[step.group] = step.to;
  }
  double sensitivity = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) sensitivity += groups[g][at[g]].sensitivity;
  return sensitivity;
}

// The choices for the first groups; the backward pass is `parent` in the list before.
struct Partial {
  std::int64_t cost;
  double sensitivity;
  std::size_t parent, option;
};

std::vector<Partial> extend(const std::vector<Partial>& before, const std::vector<Option>& group,
                            const Relaxation& to_come, std::int64_t budget, double known) {
  std::vector<Partial> next;
  for (std::size_t p = 0; p < before.size(); ++p) {
    for (std::size_t o = 0; o < group.size(); ++o) {
      const Partial partial{before[p].cost + group[o].cost,
                            before[p].sensitivity + group[o].sensitivity, p, o};
      const std::int64_t rest = budget - partial.cost;
      if (rest < to_come.least_cost()) break;
      if (partial.sensitivity + to_come.bound(rest) <= known) next.push_back(partial);
    }
  }
  std::stable_sort(next.begin(), next.end(), [](const Partial& a, const Partial& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.sensitivity < b.sensitivity;
  });
  std::vector<Partial> kept;
  for (const Partial& partial : next)
    if (kept.empty() || partial.sensitivity < kept.back().sensitivity) kept.push_back(partial);
  return kept;
}

}  // namespace

std::int64_t least_cost(const std::vector<std::vector<BitChoice>>& groups) {
  std::int64_t cost = 0;
  for (const auto& group : groups) cost += useful(group).front().cost;
  return cost;
}

std::optional<Allocation> allocate_bits(const std::vector<std::vector<BitChoice>>& choices,
                                        std::int64_t budget) {
  std::vector<std::vector<Option>> groups;
  double magnitude = 0;
  for (const auto& group : choices) {
    groups.push_back(useful(group));
    magnitude +=
        std::abs(groups.back().front().sensitivity) + std::abs(groups.back().back().sensitivity);
  }
  const Relaxation all(groups, 0);
  if (all.least_cost() > budget) return std::nullopt;
  // Sums in another order differ in their last bits; those must not cut off the best.
  const double known = greedy_sensitivity(groups, all, budget) + 1e-12 * magnitude;

  std::vector<std::vector<Partial>> lists{{{0, 0, 0, 0}}};
  for (std::size_t g = 0; g < groups.size(); ++g)
    lists.push_back(extend(lists.back(), groups[g], Relaxation(groups, g + 1), budget, known));

  Allocation result;
  const Partial& best = lists.back().back();
  result.cost = best.cost;
  result.sensitivity = best.sensitivity;
  result.chosen.resize(groups.size());
  std::size_t at = lists.back().size() - 1;
  for (std::size_t g = groups.size(); g-- > 0;) {
    const Partial& partial = lists[g + 1][at];
    result.chosen[g] = groups[g][partial.option].index;
    at = partial.parent;
  }
  return result;
}

}  // namespace zsq::quant
