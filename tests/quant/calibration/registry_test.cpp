// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/registry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

template <class Name, class Rules>
void expect_one_row_each(const Rules& rules) {
  const auto& names = EnumNames<Name>::names;
  EXPECT_EQ(rules.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(std::count_if(rules.begin(), rules.end(),
                            [&](const auto& row) { return row.name == static_cast<Name>(i); }),
              1)
        << names[i];
}

TEST(RangeRules, EachHasOneRow) {
  expect_one_row_each<WeightRange>(weight_range_rules());
  expect_one_row_each<ActivationRange>(activation_range_rules());
}

// What every rule for activations promises.
TEST(RangeRules, AnswerARangeThatIsNeverWiderThanTheValues) {
  const auto x = test::normal({4, 3, 16, 16}, 3);
  for (const auto& rule : activation_range_rules()) {
    if (!rule.observer) continue;
    const auto observer = rule.observer({}, activation_spec(4, Mode::deploy));
    observer->observe(x);
    const auto [lo, hi] = observer->range();
    EXPECT_LT(lo, hi) << enum_name(rule.name);
    EXPECT_GE(lo, x.min().item<double>() - 1e-3) << enum_name(rule.name);
    EXPECT_LE(hi, x.max().item<double>() + 1e-3) << enum_name(rule.name);
    observer->observe(x.div(0));
    const auto [bad_lo, bad_hi] = observer->range();
    EXPECT_FALSE(std::isfinite(bad_lo) && std::isfinite(bad_hi)) << enum_name(rule.name);
  }
}

// What every rule for weights promises: each row a grid of its own, on the weight's device.
TEST(RangeRules, GiveEachRowAGridOfItsOwn) {
  const auto w = test::normal({5, 40}, 4);
  const auto spec = weight_spec(4, false, Mode::deploy);
  for (const auto& rule : weight_range_rules()) {
    const auto all = rule.grids(w, spec);
    ASSERT_EQ(all.scale.sizes(), at::IntArrayRef{5}) << enum_name(rule.name);
    const auto third = rule.grids(w.narrow(0, 2, 1), spec);
    EXPECT_EQ(all.scale[2].item<float>(), third.scale[0].item<float>()) << enum_name(rule.name);
    EXPECT_EQ(all.zero_point[2].item<float>(), third.zero_point[0].item<float>());
  }
}

}  // namespace
}  // namespace zsq::quant
