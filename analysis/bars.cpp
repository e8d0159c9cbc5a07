// SPDX-License-Identifier: Apache-2.0
#include "analysis/bars.h"

#include <algorithm>
#include <cmath>

namespace zsq::analysis {
namespace {

constexpr double kBarsWidth = 414, kNames = 134, kTexts = 86, kBarsTop = 32, kRow = 18, kBar = 12;
constexpr std::size_t kLongestName = 19;

// The end of a layer's name tells more than its beginning.
std::string elided(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  std::size_t begin = name.size() - kLongestName + 1;
  while ((static_cast<unsigned char>(name[begin]) & 0xC0) == 0x80) ++begin;  // within a character
  return "…" + name.substr(begin);
}

}  // namespace

Svg bar_chart(const std::string& title, const std::vector<Bar>& bars, double full) {
  const auto shows = [](double value) { return std::isfinite(value) && value > 0; };
  for (const Bar& bar : bars)
    if (shows(bar.value)) full = std::max(full, bar.value);
  Svg svg(kBarsWidth, kBarsTop + kRow * static_cast<double>(bars.size()) + 6, title);
  svg.text({0, 16}, title, "ink", 14);
  double top = kBarsTop;
  for (const Bar& bar : bars) {
    const double length = shows(bar.value) ? (kBarsWidth - kNames - kTexts) * bar.value / full : 0;
    svg.text({kNames - 6, top + 10}, elided(bar.name), "faint", 11, "end");
    if (length > 0) svg.rect({kNames, top}, length, kBar, series(bar.colour));
    svg.text({kNames + length + 6, top + 10}, bar.text, "ink", 11);
    top += kRow;
  }
  return svg;
}

}  // namespace zsq::analysis
