// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/experience.h"

#include <algorithm>
#include <array>
#include <limits>

namespace zsq::pipeline {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr const char *kAsGood = "as good as the float network",
                     *kNearly = "nearly as good as the float network",
                     *kLittleWorse = "a little worse than the float network",
                     *kWorse = "worse than the float network",
                     *kMuchWorse = "much worse than the float network",
                     *kHardlyUsable = "much worse than the float network, if not unusable",
                     *kUnusable = "unusable without more bits, training or a larger --time_budget";

// At the same divergence one network loses far more than another, and nothing known of a new one
// tells which it is like, so all of them are quoted.
constexpr std::array<Band, 7> kClasses{{{0.06, kAsGood, "good", 0.0, 0.3, 0.8, 7},
                                        {0.12, kNearly, "good", 0.0, 1.1, 1.9, 4},
                                        {0.25, kLittleWorse, "fair", 0.8, 4.6, 5.0, 7},
                                        {0.5, kWorse, "fair", 1.6, 12.8, 20.7, 5},
                                        {1, kMuchWorse, "bad", 3.6, 30.6, 44.8, 4},
                                        {2, kHardlyUsable, "bad", 6.8, 90.6, 91.5, 6},
                                        {kNoLimit, kUnusable, "bad", 45.2, 72.6, 85.0, 4}}};

// Few outputs have little divergence to lose: the same KL costs them more.
constexpr std::array<Band, 4> kTwoClasses{{{0.012, kAsGood, "good", 0.0, 0.4, 0.5, 4},
                                           {0.06, kNearly, "good", 0.0, 1.6, 1.6, 4},
                                           {0.25, kMuchWorse, "bad", 5.3, 6.9, 6.9, 2},
                                           {kNoLimit, kHardlyUsable, "bad", 5.6, 34.3, 46.2, 3}}};
constexpr std::array<Band, 5> kFewClasses{{{0.012, kAsGood, "good", 0.0, 0.9, 1.0, 6},
                                           {0.06, kNearly, "good", 0.1, 1.8, 2.0, 6},
                                           {0.25, kWorse, "fair", 0.4, 4.1, 4.1, 5},
                                           {0.5, kMuchWorse, "bad", 4.7, 26.5, 26.5, 4},
                                           {kNoLimit, kHardlyUsable, "bad", 15.9, 49.0, 71.7, 5}}};
constexpr std::array<Band, 4> kOneLabel{{{0.012, kAsGood, "good", 0.0, 0.1, 0.3, 4},
                                         {0.06, kNearly, "good", 0.2, 1.6, 1.6, 4},
                                         {0.25, kMuchWorse, "bad", 2.1, 6.7, 6.7, 3},
                                         {kNoLimit, kHardlyUsable, "bad", 9.7, 34.0, 46.1, 3}}};
// The divergence is a sum over the labels: of many labels it is large where little is lost.
constexpr std::array<Band, 4> kLabels{{{0.012, kAsGood, "good", 0.0, 2.7, 2.7, 8},
                                       {0.06, kNearly, "good", 0.0, 3.2, 3.7, 6},
                                       {0.25, kWorse, "fair", 0.0, 7.3, 11.3, 8},
                                       {kNoLimit, kHardlyUsable, "bad", 0.6, 37.4, 62.2, 8}}};

// In per cent of the values' variance.
constexpr std::array<Band, 4> kOneValue{{{0.012, kAsGood, "good", 0.3, 1.9, 1.9, 4},
                                         {0.03, kNearly, "good", 1.7, 2.1, 2.1, 3},
                                         {0.25, kWorse, "fair", 3.5, 24.0, 41.7, 4},
                                         {kNoLimit, kHardlyUsable, "bad", 26.1, 99.0, 99.0, 4}}};
constexpr std::array<Band, 4> kValues{{{0.012, kAsGood, "good", 0.2, 4.1, 4.1, 7},
                                       {0.03, kNearly, "good", 1.1, 4.1, 4.1, 4},
                                       {0.25, kWorse, "fair", 3.5, 11.7, 24.6, 7},
                                       {kNoLimit, kHardlyUsable, "bad", 16.7, 87.8, 128.3, 7}}};

constexpr const char *kTop1 = "points of top-1",
                     *kError = "% of the values' variance (squared error)";
constexpr std::array<Experience, 7> kExperiences{
    {{"logits", 2, 2, 0.93, kTop1, kTwoClasses},
     {"logits", 3, 7, 0.85, kTop1, kFewClasses},  // measured: 3 and 5; beyond them are 2 and 10
     {"logits", 8, 1000, 0.85, kTop1, kClasses},
     {"scores", 1, 1, 0.93, "points of labels on the right side", kOneLabel},
     {"scores", 3, 100, 0.93, "points of F1", kLabels},
     {"values", 1, 1, 0.85, kError, kOneValue},
     {"values", 2, 100, 0.98, kError, kValues}}};

}  // namespace

const Experience* experience_with(const std::string& kind, std::int64_t outputs) {
  for (const Experience& known : kExperiences)
    if (kind == known.kind && outputs >= known.fewest && outputs <= known.most) return &known;
  return nullptr;
}

std::string mood_of_band(const std::string& verdict) {
  // The longest words that it begins with: some begin with others.
  std::string mood;
  std::size_t longest = 0;
  for (const Experience& known : kExperiences)
    for (const Band& band : known.bands) {
      const std::string words = band.words;
      if (words.size() <= longest || !verdict.starts_with(words)) continue;
      longest = words.size();
      mood = band.mood;
    }
  return mood;
}

}  // namespace zsq::pipeline
