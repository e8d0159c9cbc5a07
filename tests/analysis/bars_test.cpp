// SPDX-License-Identifier: Apache-2.0
#include "analysis/bars.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>

namespace zsq::analysis {
namespace {

std::vector<double> lengths(const std::string& svg, const char* cls) {
  std::vector<double> found;
  const std::regex bar("<rect class=\"" + std::string(cls) + "\"[^>]* width=\"([0-9.]+)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), bar), end; at != end; ++at)
    found.push_back(std::stod((*at)[1]));
  return found;
}

TEST(Bars, AreAsLongAsTheirValues) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = bar_chart("t < u", {{"a", 10, "ten"},
                                              {"b", 5, "five", 1},
                                              {"layer.with.a.very.long.name.conv1", 2.5, "x"},
                                              {"c", 0, "zero"},
                                              {"d", none, ""}})
                              .element();
  const auto blue = lengths(svg, "s0"), other = lengths(svg, "s1");
  ASSERT_EQ(blue.size(), 2u) << svg;
  ASSERT_EQ(other.size(), 1u);
  EXPECT_NEAR(blue[0] / 2, other[0], 0.01);
  EXPECT_NEAR(blue[0] / 4, blue[1], 0.01);
  for (const char* text : {">t &lt; u<", ">ten<", ">zero<", "long.name.conv1<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_EQ(svg.find("layer.with"), std::string::npos);
}

TEST(Bars, AFullScaleMayBeLongerThanAllValues) {
  const auto half = lengths(bar_chart("", {{"a", 50, ""}}, 100).str(), "s0");
  const auto whole = lengths(bar_chart("", {{"a", 50, ""}}).str(), "s0");
  EXPECT_NEAR(half[0], whole[0] / 2, 0.01);
}

TEST(Svg, IsAFileOrAnElementOfAPage) {
  const Svg svg = bar_chart("title", {{"a", 1, ""}});
  EXPECT_NE(svg.str().find("xmlns"), std::string::npos);
  EXPECT_NE(svg.str().find(svg_style()), std::string::npos);
  EXPECT_TRUE(svg.element().starts_with("<svg "));
  EXPECT_EQ(svg.element().find("xmlns"), std::string::npos);
  EXPECT_EQ(svg.element().find("<style"), std::string::npos);
}

}  // namespace
}  // namespace zsq::analysis
