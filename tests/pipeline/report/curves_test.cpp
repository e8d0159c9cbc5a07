// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace zsq::pipeline {
namespace {

NamedHistory history(const std::string& name, int steps, const std::string& metric,
                     double (*value)(int)) {
  NamedHistory run{name, {}};
  for (int step = 1; step <= steps; ++step)
    run.records.push_back({1, "fine-tune", step, steps, 0, {{metric, value(step)}}});
  return run;
}

// Pixels of the n-th line of a chart.
std::vector<analysis::Point> line_of(const std::string& svg, int n = 0) {
  std::size_t at = 0;
  for (; n >= 0; --n) at = svg.find("points=\"", at) + 8;
  std::istringstream text(svg.substr(at, svg.find('"', at) - at));
  std::vector<analysis::Point> points;
  char comma = 0;
  for (double x = 0, y = 0; text >> x >> comma >> y;) points.emplace_back(x, y);
  return points;
}

double constant(int) { return 2; }
double linear(int step) { return step + 10; }
double zigzag(int step) { return step % 2 ? 1 : 3; }
double falling(int step) { return 100.0 / step; }

TEST(Curves, StandWhereTheValuesAre) {
  const auto charts = curve_charts({history("", 5, "loss_student", linear)});
  ASSERT_EQ(charts.size(), 1u);
  const std::string svg = charts[0].str();
  EXPECT_NE(svg.find(">Loss of the student<"), std::string::npos);
  const auto points = line_of(svg);
  ASSERT_EQ(points.size(), 5u);
  for (std::size_t i = 2; i < points.size(); ++i) {  // a straight line, to the right and up
    EXPECT_NEAR(points[i].first - points[i - 1].first, points[1].first - points[0].first, 0.02);
    EXPECT_NEAR(points[i].second - points[i - 1].second, points[1].second - points[0].second, 0.02);
  }
  EXPECT_LT(points[1].second, points[0].second);
}

TEST(Curves, OfManyStepsAreMeans) {
  const auto charts = curve_charts(
      {history("", 2400, "loss_student", zigzag), history("", 2, "loss_student", zigzag)});
  ASSERT_EQ(charts.size(), 1u);
  const auto means = line_of(charts[0].str()), ends = line_of(charts[0].str(), 1);
  ASSERT_EQ(means.size(), 120u);
  for (const auto& [x, y] : means) EXPECT_NEAR(y, (ends[0].second + ends[1].second) / 2, 0.02);
}

TEST(Curves, ThatSayNothingAreLeftOut) {
  EXPECT_TRUE(curve_charts({}).empty());
  EXPECT_TRUE(curve_charts({history("", 5, "rate_factor", constant)}).empty());
  EXPECT_TRUE(curve_charts({history("", 1, "loss_student", linear)}).empty());
  EXPECT_TRUE(curve_charts({history("", 5, "block", linear)}).empty());
}

TEST(Curves, OfSeveralRunsShareAChartAndHaveALegend) {
  const auto charts = curve_charts({history("first", 5, "loss_student", linear),
                                    history("second", 9, "loss_student", falling),
                                    history("third", 9, "bn_statistics", falling)});
  ASSERT_EQ(charts.size(), 2u);
  for (const char* name : {">first<", ">second<"})
    EXPECT_NE(charts[0].str().find(name), std::string::npos);
}

// 100 / step on a logarithmic axis: equal factors are equal distances.
TEST(Curves, OverDecadesAreLogarithmic) {
  const auto points = line_of(curve_charts({history("", 64, "loss_student", falling)})[0].str());
  ASSERT_EQ(points.size(), 64u);
  EXPECT_NEAR(points[1].second - points[0].second, points[63].second - points[31].second, 0.02);
}

}  // namespace
}  // namespace zsq::pipeline
