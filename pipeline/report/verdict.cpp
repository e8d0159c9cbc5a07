// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "pipeline/images/held_out.h"

namespace zsq::pipeline {
namespace {

// Points of top-1 that runs lost on real images: docs/verdict.json, measured by
// scripts/measure_verdict.py, which prints this table (no gain is promised: 0 for less, and at
// most 0.3 for less than one of 300 images). At the
// same divergence a network with many classes loses more.
struct Loss {
  double median, largest;
};
struct Band {
  double below;  // divergence, nats per image
  Loss few_classes, many_classes;
};
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr std::array<Band, 6> kBands{{{0.06, {0.0, 0.3}, {0.0, 0.3}},
                                      {0.12, {0.2, 0.4}, {0.0, 0.3}},
                                      {0.25, {0.1, 1.0}, {0.7, 3.7}},
                                      {0.5, {0.4, 1.5}, {5.2, 6.0}},
                                      {1, {2.1, 3.0}, {7.3, 22.0}},
                                      {kNoLimit, {3.4, 4.2}, {48.3, 84.7}}}};
constexpr std::int64_t kManyClasses = 100;  // the networks measured have 10 and 1000

const char* in_words(double lost) {
  if (lost < 0.5) return "as good as the float network";
  if (lost < 1) return "nearly as good as the float network";
  if (lost < 3) return "a little worse than the float network";
  if (lost < 8) return "worse than the float network";
  if (lost < 20) return "much worse than the float network";
  return "unusable without more bits, training or a larger --time_budget";
}

}  // namespace

std::string verdict_on(const std::vector<SyntheticResult>& synthetic, std::int64_t classes) {
  if (synthetic.empty()) return "";
  const double divergence = pool(synthetic).divergence;
  const Band& band = *std::find_if(kBands.begin(), kBands.end() - 1,
                                   [&](const Band& b) { return divergence < b.below; });
  const Loss& loss = classes < kManyClasses ? band.few_classes : band.many_classes;
  char text[200];
  std::snprintf(text, sizeof text,
                "%s: runs with such a divergence lost %.1f points of top-1 (median; at most %.1f)",
                in_words(loss.median), loss.median, loss.largest);
  return text;
}

}  // namespace zsq::pipeline
