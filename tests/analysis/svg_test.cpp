// SPDX-License-Identifier: Apache-2.0
#include "analysis/svg.h"

#include <gtest/gtest.h>

#include <regex>
#include <stack>

namespace zsq::analysis {
namespace {

// Every tag that opens is closed, in order.
bool well_formed(const std::string& svg) {
  std::stack<std::string> open;
  const std::regex tag("<(/?)([a-zA-Z]+)([^<>]*?)(/?)>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), tag), end; at != end; ++at) {
    const auto& match = *at;
    if (match[4] == "/") continue;
    if (match[1] != "/") {
      open.push(match[2]);
    } else {
      if (open.empty() || open.top() != match[2].str()) return false;
      open.pop();
    }
  }
  return open.empty();
}

TEST(Svg, IsWellFormedAndHasColoursForBothPages) {
  Svg svg(100, 50, "a < b & \"c\"");
  svg.line({1, 2}, {3, 4}, "grid");
  svg.polyline({{0, 0}, {10, 5}}, series(0));
  svg.circle({5, 5}, 2, series(1), 0.5);
  svg.ring({5, 5}, 2, series(2));
  svg.rect({0, 0}, 4, 4, "panel");
  svg.cell({0, 0}, 4, 4, ramp(0.5));
  svg.text({9, 9}, "x < y", "ink", 12, "middle", -90);
  const std::string text = svg.str();
  EXPECT_TRUE(well_formed(text)) << text;
  EXPECT_NE(text.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(text.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(text.find("points=\"0.00,0.00 10.00,5.00 \""), std::string::npos) << text;
  EXPECT_EQ(text.find("http", text.find("xmlns") + 40), std::string::npos);  // loads nothing
}

TEST(Svg, RampRunsFromDarkToLight) {
  const auto brightness = [](const std::string& colour) {
    int sum = 0;
    for (const int at : {1, 3, 5})
      sum += std::stoi(colour.substr(static_cast<std::size_t>(at), 2), nullptr, 16);
    return sum;
  };
  for (int i = 1; i <= 20; ++i)
    EXPECT_GT(brightness(ramp(i / 20.0)), brightness(ramp((i - 1) / 20.0)));
  EXPECT_EQ(ramp(-1), ramp(0));
  EXPECT_EQ(ramp(2), ramp(1));
  EXPECT_EQ(ramp(0), "#2e225e");
}

TEST(Svg, NumbersForMarksAndForTables) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(1200), "1200");
  EXPECT_EQ(short_number(3.14159e-5), "3.1e-5");
  EXPECT_EQ(full_number(0.1 + 0.2), "0.3");
  EXPECT_EQ(full_number(1.0 / 3), "0.3333333333");
  EXPECT_EQ(series(0), series(kSeries));
}

}  // namespace
}  // namespace zsq::analysis
