// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "pipeline/images/held_out.h"

namespace zsq::pipeline {
namespace {

// Points of top-1 that runs of three networks lost on real images: docs/verdict.json, measured by
// scripts/measure_verdict.py, which prints the table (no gain is promised: 0 for less). At the same
// divergence one network loses far more than another, and nothing known of a new one tells which it
// is like, so all of them are quoted.
struct Band {
  double below;        // divergence, nats per image
  double least, most;  // medians of the networks
  double largest;      // loss of a run
};
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr std::array<Band, 6> kBands{{{0.06, 0.0, 0.1, 0.7},
                                      {0.12, 0.3, 1.1, 1.9},
                                      {0.25, 0.8, 2.2, 4.9},
                                      {0.5, 2.1, 8.9, 20.7},
                                      {1, 2.6, 24.2, 44.8},
                                      {kNoLimit, 32.7, 90.6, 91.5}}};

struct Level {
  double below;  // points lost
  const char *words, *mood;
};
constexpr std::array<Level, 6> kLevels{
    {{0.5, "as good as the float network", "good"},
     {1, "nearly as good as the float network", "good"},
     {3, "a little worse than the float network", "fair"},
     {8, "worse than the float network", "fair"},
     {20, "much worse than the float network", "bad"},
     {kNoLimit, "unusable without more bits, training or a larger --time_budget", "bad"}}};

const char* in_words(double lost) {
  return std::find_if(kLevels.begin(), kLevels.end() - 1,
                      [&](const Level& level) { return lost < level.below; })
      ->words;
}

}  // namespace

std::string verdict_on(const std::vector<SyntheticResult>& synthetic) {
  if (synthetic.empty()) return "";
  const double divergence = pool(synthetic).divergence;
  const Band& band = *std::find_if(kBands.begin(), kBands.end() - 1,
                                   [&](const Band& b) { return divergence < b.below; });
  char text[200];
  std::snprintf(
      text, sizeof text,
      "%s: runs with such a divergence lost %.1f to %.1f points of top-1 (medians of three "
      "networks; at most %.1f)",
      in_words((band.least + band.most) / 2), band.least, band.most, band.largest);
  return text;
}

std::string mood_of(const std::string& verdict) {
  for (const Level& level : kLevels)
    if (verdict.starts_with(level.words)) return level.mood;
  return "bad";
}

}  // namespace zsq::pipeline
