// SPDX-License-Identifier: Apache-2.0
#include "analysis/plots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

namespace zsq::analysis {
namespace {

std::vector<std::vector<double>> numbers_of(const std::string& svg, const char* pattern) {
  std::vector<std::vector<double>> found;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(svg.begin(), svg.end(), expression), end; at != end; ++at) {
    std::vector<double> numbers;
    for (std::size_t i = 1; i < at->size(); ++i) numbers.push_back(std::stod((*at)[i]));
    found.push_back(numbers);
  }
  return found;
}

TEST(LineCharts, PutValuesWhereTheAxesSay) {
  const std::string svg =
      line_charts({{"one", {"x", false, 0, 10}, {{"a", {{0, 0}, {5, 50}, {10, 100}}}}}},
                  {"y", false, 0, 100})
          .str();
  const auto line =
      numbers_of(svg, "points=\"([0-9.]+),([0-9.]+) ([0-9.]+),([0-9.]+) ([0-9.]+),([0-9.]+) \"");
  ASSERT_EQ(line.size(), 1u) << svg;
  // Equal steps, to the right and up.
  EXPECT_NEAR(line[0][2] - line[0][0], line[0][4] - line[0][2], 0.02);
  EXPECT_GT(line[0][2], line[0][0]);
  EXPECT_NEAR(line[0][1] - line[0][3], line[0][3] - line[0][5], 0.02);
  EXPECT_GT(line[0][1], line[0][3]);
  EXPECT_NE(svg.find(">one<"), std::string::npos);
  EXPECT_NE(svg.find(">100<"), std::string::npos);
}

// An axis has no steps between values that differ by a rounding.
TEST(LineCharts, DrawValuesThatHardlyDiffer) {
  for (const double value : {0.0, 5.0, -1e-30, 1e300})
    for (const double other : {value, std::nextafter(value, 1e301)}) {
      const std::string svg =
          line_charts({{"one", {"x"}, {{"a", {{0, value}, {1, other}}}}}}, {"y"}).str();
      EXPECT_LT(svg.size(), 20000u) << value;
      EXPECT_EQ(svg.find("nan"), std::string::npos) << value;
    }
}

TEST(LineCharts, LogarithmicAxesLeaveOutWhatIsNotPositive) {
  const std::string svg =
      line_charts({{"", {"x", true, 1, 100}, {{"a", {{0, 1}, {1, 1}, {10, 2}, {100, 3}}}}}},
                  {"y", false, 1, 3})
          .str();
  const auto line =
      numbers_of(svg, "points=\"([0-9.]+),[0-9.]+ ([0-9.]+),[0-9.]+ ([0-9.]+),[0-9.]+ \"");
  ASSERT_EQ(line.size(), 1u) << svg;
  EXPECT_NEAR(line[0][1] - line[0][0], line[0][2] - line[0][1], 0.02);  // decades are equal
}

TEST(LineCharts, SeveralCurvesHaveALegend) {
  const std::string svg =
      line_charts({{"l", {"x"}, {{"first", {{0, 1}, {1, 2}}}, {"second", {{0, 2}, {1, 1}}}}},
                   {"r", {"x"}, {{"second", {{0, 2}, {1, 1}}}}}},
                  {"y"})
          .str();
  for (const char* name : {">first<", ">second<"}) EXPECT_NE(svg.find(name), std::string::npos);
  EXPECT_EQ(numbers_of(svg, "class=\"s1 open\" stroke-width=\"([0-9.]+)\"").size(),
            2u);  // one colour
}

TEST(Scatter, HasAMarkForEachPoint) {
  const std::string svg =
      scatter_charts({{"t", {{"a", {{0, 0}, {1, 1}, {2, 2}}}, {"b", {{1, 0}}, true}}}}, {"x"},
                     {"y"})
          .str();
  EXPECT_EQ(numbers_of(svg, "r=\"(2\\.10)\"").size(), 3u);
  EXPECT_EQ(numbers_of(svg, "r=\"(2\\.60)\"").size(), 1u);
}

TEST(HeatMaps, ColourIsTheValuesPlaceOnTheScale) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = heat_maps({{"m", {{1, 10}, {100, nan}}}}, {"r1", "r2"}, {"c1", "c2"},
                                    "columns", {"v", true, 1, 100})
                              .str();
  const std::regex cell(
      "fill=\"(#[0-9a-f]{6})\" x=\"[0-9.]+\" y=\"[0-9.]+\" width=\"1(?:65|64|66)");
  std::vector<std::string> colours;
  for (std::sregex_iterator at(svg.begin(), svg.end(), cell), end; at != end; ++at)
    colours.push_back((*at)[1]);
  EXPECT_EQ(colours, (std::vector<std::string>{ramp(0), ramp(0.5), ramp(1)})) << svg;
}

}  // namespace
}  // namespace zsq::analysis
