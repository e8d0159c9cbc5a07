// SPDX-License-Identifier: Apache-2.0
#include "pipeline/verdict.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

namespace zsq::pipeline {
namespace {

// What runs with such a KL on optimised images lost in top-1 on real ones: 96 runs of ResNet-20 and
// EfficientNet-Lite0, docs/selection.json. In points.
struct Band {
  double below;  // KL, nats per image
  double median, largest;
  const char* words;
};
constexpr std::array<Band, 6> kBands{{{0.06, 0.2, 0.7, "as good as the float network"},
                                      {0.12, 0.3, 0.7, "nearly as good as the float network"},
                                      {0.25, 0.7, 3.7, "a little worse than the float network"},
                                      {0.5, 1.4, 7, "worse than the float network"},
                                      {1, 3.9, 16, "clearly worse than the float network"},
                                      {2, 9.7, 87, "much worse than the float network"}}};

}  // namespace

std::string verdict_on(const std::vector<SyntheticResult>& synthetic) {
  const auto optimised = std::find_if(synthetic.begin(), synthetic.end(),
                                      [](const auto& r) { return r.kind == "optimised"; });
  if (optimised == synthetic.end()) return "";
  const double divergence = optimised->divergence;
  const auto band = std::find_if(kBands.begin(), kBands.end(),
                                 [&](const Band& b) { return divergence < b.below; });
  if (band == kBands.end())
    return "unusable without more bits, training or a larger --time_budget: runs with such a KL "
           "lost "
           "30 points of top-1 and more";
  char text[200];
  std::snprintf(text, sizeof text,
                "%s: runs with such a KL lost %.1f points of top-1 (median; at most %.1f)",
                band->words, band->median, band->largest);
  return text;
}

}  // namespace zsq::pipeline
