// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <algorithm>
#include <array>
#include <limits>

#include "pipeline/images/held_out.h"
#include "pipeline/report/page.h"

namespace zsq::pipeline {
namespace {

// Points of top-1 that runs of three networks, with learning and without, lost on real images:
// docs/verdict.json, measured by scripts/measure_verdict.py, which prints the table (no gain is
// promised: 0 for less). At the same divergence one network loses far more than another, and
// nothing known of a new one tells which it is like, so all of them are quoted.
struct Band {
  double below;  // divergence, nats per image
  const char *words, *mood;
  double least, most;  // medians of the networks that have runs there
  double largest;      // loss of a run
  const char* networks = "three";
};
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr std::array<Band, 7> kBands{
    {{0.06, "as good as the float network", "good", 0.0, 0.1, 0.7},
     {0.12, "nearly as good as the float network", "good", 0.3, 1.1, 1.9},
     {0.25, "a little worse than the float network", "fair", 0.8, 3.6, 5.0},
     {0.5, "worse than the float network", "fair", 1.6, 6.2, 20.7},
     {1, "much worse than the float network", "bad", 3.6, 25.9, 44.8},
     {2, "much worse than the float network, if not unusable", "bad", 6.8, 90.6, 91.5},
     {kNoLimit, "unusable without more bits, training or a larger --time_budget", "bad", 45.2, 59.0,
      85.0, "two"}}};

}  // namespace

std::string verdict_on(const std::vector<SyntheticResult>& synthetic) {
  if (synthetic.empty()) return "";
  const double divergence = pool(synthetic).divergence;
  const Band& band = *std::find_if(kBands.begin(), kBands.end() - 1,
                                   [&](const Band& b) { return divergence < b.below; });
  return format(
      "%s: runs with such a divergence lost %.1f to %.1f points of top-1 (medians of %s networks; "
      "at most %.1f)",
      band.words, band.least, band.most, band.networks, band.largest);
}

std::string verdict_on(const Accuracy& teacher, const Accuracy& student) {
  const double lost = teacher.top1 - student.top1;
  return (lost > 0.005 ? format("loses %.2f points of top-1", lost)
                       : "as accurate as the float network") +
         format(": %.2f %% instead of %.2f %% on %lld real images", student.top1, teacher.top1,
                static_cast<long long>(student.images));
}

std::string mood_of(const std::string& verdict) {
  for (const Band& band : kBands)
    if (verdict.starts_with(band.words)) return band.mood;
  return "bad";
}

}  // namespace zsq::pipeline
