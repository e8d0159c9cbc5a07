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
// tells which it is like, so all of them are quoted. "As good as" is said where no run lost more
// than a point or 1 % of the values' variance, "nearly as good as" where none lost more than 2
// points or 2.5 %.
constexpr std::array<Band, 7> kClasses{{{0.06, kAsGood, "good", 0.0, 0.6, 0.9, 7, 0.85},
                                        {0.12, kNearly, "good", 0.1, 0.8, 1.6, 5, 0.65},
                                        {0.25, kLittleWorse, "fair", 0.4, 4.6, 5.0, 7},
                                        {0.5, kWorse, "fair", 1.6, 13.5, 13.5, 5},
                                        {1, kMuchWorse, "bad", 3.9, 29.9, 44.7, 4},
                                        {2, kHardlyUsable, "bad", 7.0, 89.6, 92.1, 6},
                                        {kNoLimit, kUnusable, "bad", 44.3, 72.6, 83.7, 4}}};

// Few outputs have little divergence to lose: the same KL costs them more.
constexpr std::array<Band, 4> kTwoClasses{{{0.012, kAsGood, "good", 0.0, 0.3, 0.3, 3, 0.93},
                                           {0.06, kNearly, "good", 0.0, 0.0, 0.4, 3, 0.85},
                                           {0.25, kMuchWorse, "bad", 0.5, 34.8, 47.8, 4},
                                           {kNoLimit, kHardlyUsable, "bad", 5.8, 42.5, 46.2, 4}}};
constexpr std::array<Band, 5> kFewClasses{{{0.007, kAsGood, "good", 0.0, 0.3, 0.3, 6, 0.85},
                                           {0.06, kNearly, "good", 0.0, 0.7, 1.3, 7, 0.75},
                                           {0.25, kLittleWorse, "fair", 0.0, 2.1, 2.1, 7},
                                           {0.5, kMuchWorse, "bad", 3.1, 72.5, 74.0, 4},
                                           {kNoLimit, kHardlyUsable, "bad", 15.9, 48.6, 71.7, 6}}};
constexpr std::array<Band, 4> kOneLabel{{{0.012, kAsGood, "good", 0.0, 0.0, 0.0, 2, 0.93},
                                         {0.06, kNearly, "good", 0.0, 0.0, 0.3, 2, 0.85},
                                         {0.25, kMuchWorse, "bad", 0.9, 6.8, 6.8, 3},
                                         {kNoLimit, kHardlyUsable, "bad", 5.6, 33.8, 46.1, 3}}};
// The divergence is a sum over the labels: of many labels it is large where little is lost.
constexpr std::array<Band, 4> kLabels{{{0.06, kAsGood, "good", 0.0, 0.1, 0.2, 8, 0.93},
                                       {0.25, kNearly, "good", 0.0, 0.3, 0.7, 8, 0.84},
                                       {1, kWorse, "fair", 0.1, 1.9, 3.2, 7},
                                       {kNoLimit, kHardlyUsable, "bad", 2.7, 23.4, 35.9, 8}}};

// In per cent of the values' variance.
constexpr std::array<Band, 4> kOneValue{{{0.004, kAsGood, "good", 0.0, 0.2, 0.3, 3, 0.92},
                                         {0.03, kNearly, "good", 0.2, 2.0, 2.0, 3, 0.80},
                                         {0.25, kWorse, "fair", 2.2, 25.9, 39.4, 4},
                                         {kNoLimit, kHardlyUsable, "bad", 26.4, 97.5, 351.2, 4}}};
constexpr std::array<Band, 4> kValues{{{0.012, kAsGood, "good", 0.2, 0.4, 0.6, 7, 0.98},
                                       {0.03, kNearly, "good", 0.7, 1.7, 1.7, 3, 0.96},
                                       {0.25, kWorse, "fair", 1.6, 11.0, 22.8, 7},
                                       {kNoLimit, kHardlyUsable, "bad", 17.0, 85.0, 206.1, 7}}};

constexpr const char *kTop1 = "points of top-1",
                     *kError = "% of the values' variance (squared error)";
constexpr std::array<Experience, 7> kExperiences{
    {{"logits", 2, 2, kTop1, kTwoClasses},
     {"logits", 3, 7, kTop1, kFewClasses},  // measured: 3, 4 and 5; beyond them are 2 and 10
     {"logits", 8, 1000, kTop1, kClasses},
     {"scores", 1, 1, "points of labels on the right side", kOneLabel},
     {"scores", 3, 100, "points of F1", kLabels},
     {"values", 1, 1, kError, kOneValue},
     {"values", 2, 100, kError, kValues}}};

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
