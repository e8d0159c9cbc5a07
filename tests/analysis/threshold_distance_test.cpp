// SPDX-License-Identifier: Apache-2.0
#include "analysis/threshold_distance.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "tests/train/tiny.h"

namespace zsq::analysis {
namespace {

TEST(ThresholdDistances, AreStepsToTheNextThreshold) {
  const at::NoGradGuard no_grad;
  train::Tiny tiny;
  const auto sites = quant::weight_sites(tiny.student);
  std::vector<at::Tensor> steps;
  for (const auto& site : sites)
    steps.push_back(at::zeros_like(tiny.student.parameters.at(site.parameter)));
  // Every weight of the first layer in the middle of code 0: half a scale below the threshold above
  // it. Steps of -1/4, -1/40 and -1/400 scale lead there in 2, 20 and 200; the rest does not move.
  auto weight = tiny.student.parameters.at(sites[0].parameter);
  weight.zero_();
  const auto scale = tiny.student.parameters.at(sites[0].op->scale_name());
  for (const auto& [place, share] : {std::pair{0, 4.0}, {1, 40.0}, {2, 400.0}})
    steps[0].flatten()[place] = -scale[0] / share;
  const auto found =
      threshold_distances(tiny.student, steps, /*low=*/0, /*high=*/3, /*per_decade=*/1);
  ASSERT_EQ(found.edges, (std::vector<double>{0, 1, 2, 3}));
  const double n = static_cast<double>(weight.numel());
  EXPECT_NEAR(found.shares[0][0], 1 / n, 1e-9);
  EXPECT_NEAR(found.shares[0][1], 1 / n, 1e-9);
  EXPECT_NEAR(found.shares[0][2], 1 / n, 1e-9);
  EXPECT_NEAR(found.never[0], (n - 3) / n, 1e-9);
  EXPECT_EQ(found.within_one[0], 0);
  EXPECT_NEAR(found.median[0], 20, 1e-3);
  EXPECT_EQ(found.never[1], 1);  // no step at all
  EXPECT_EQ(found.median[1], 0);
  // A step of a whole scale is enough by itself, and below the first bin.
  steps[0].zero_();
  steps[0].flatten()[0] = -scale[0];
  const auto near = threshold_distances(tiny.student, steps, 0, 3, 1);
  EXPECT_NEAR(near.within_one[0], 1 / n, 1e-9);
  EXPECT_NEAR(near.shares[0][0], 1 / n, 1e-9);
}

}  // namespace
}  // namespace zsq::analysis
