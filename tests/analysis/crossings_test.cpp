// SPDX-License-Identifier: Apache-2.0
#include "analysis/crossings.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/training.h"
#include "tests/train/tiny.h"

namespace zsq::analysis {
namespace {

// Codes of a layer by the formula, one weight at a time.
std::vector<double> codes_of(const quant::Student& student, const quant::WeightSite& site) {
  const auto& weight = student.parameters.at(site.parameter);
  const auto grid = site.op->grid(weight.detach(), student.parameters);
  const auto rows = weight.detach().reshape({weight.size(0), -1});
  std::vector<double> codes;
  for (std::int64_t r = 0; r < rows.size(0); ++r)
    for (std::int64_t c = 0; c < rows.size(1); ++c) {
      const double q = std::nearbyint(rows[r][c].item<double>() / grid.scale[r].item<double>()) +
                       grid.zero_point[r].item<double>();
      codes.push_back(std::clamp(q, static_cast<double>(site.op->spec().qmin),
                                 static_cast<double>(site.op->spec().qmax)));
    }
  return codes;
}

TEST(CrossingCounter, CountsWhatWasMovedByHand) {
  const at::NoGradGuard no_grad;
  train::Tiny tiny;
  CrossingCounter counter(tiny.student);
  const auto sites = quant::weight_sites(tiny.student);
  const auto scale = tiny.student.parameters.at(sites[0].op->scale_name());
  auto weight = tiny.student.parameters.at(sites[0].parameter);
  weight.copy_(weight.clone());  // of its own
  // Three weights of the first layer to zero in the first step, one of them back in the second: a
  // whole scale away each time.
  weight.flatten()[0] = scale[0] * 2;
  weight.flatten()[1] = scale[0] * 2;
  weight.flatten()[2] = scale[0] * -2;
  counter.before_step();
  for (const int i : {0, 1, 2}) weight.flatten()[i] = 0;
  counter.after_step();
  counter.before_step();
  weight.flatten()[0] = scale[0] * 2;
  counter.after_step();
  counter.end_epoch();
  counter.before_step();
  counter.after_step();  // nothing moves
  counter.end_epoch();
  counter.end_epoch();  // no step: no epoch
  const Crossings& crossings = counter.crossings();
  ASSERT_EQ(crossings.shares.size(), 2u);
  const double n = static_cast<double>(weight.numel());
  EXPECT_EQ(crossings.sizes[0], n);
  EXPECT_NEAR(crossings.shares[0][0], 4 / n / 2, 1e-12);  // per step
  EXPECT_EQ(crossings.shares[0][1], 0);
  EXPECT_EQ(crossings.shares[1][0], 0);
  double all = 0;
  for (const double size : crossings.sizes) all += size;
  EXPECT_NEAR(crossings.mean_share(), 4 / 2.0 / (2 * all), 1e-12);
}

TEST(CrossingCounter, CountsWhatATrainingChanges) {
  train::Tiny tiny;
  Training training({tiny.teacher, train::four_bits(), {}, tiny.options, 1});
  CrossingCounter counter(training.student());
  const auto sites = quant::weight_sites(training.student());
  std::vector<std::vector<double>> before;
  std::vector<double> changed(sites.size(), 0);
  const auto all_codes = [&] {
    std::vector<std::vector<double>> codes;
    for (const auto& site : sites) codes.push_back(codes_of(training.student(), site));
    return codes;
  };
  Observer observer;
  std::int64_t steps_seen = 0;
  training.run(
      observer,
      [&](auto...) {
        counter.before_step();
        before = all_codes();
      },
      [&](auto...) {
        counter.after_step();
        const auto after = all_codes();
        for (std::size_t i = 0; i < sites.size(); ++i)
          for (std::size_t n = 0; n < after[i].size(); ++n)
            changed[i] += after[i][n] != before[i][n];
        ++steps_seen;
      });
  counter.end_epoch();
  EXPECT_EQ(steps_seen, 7);  // ten iterations, three of them warm-up
  double any = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    EXPECT_NEAR(counter.crossings().shares[0][i] * counter.crossings().sizes[i] * 7, changed[i],
                1e-9);
    any += changed[i];
  }
  EXPECT_GT(any, 0);
}

}  // namespace
}  // namespace zsq::analysis
