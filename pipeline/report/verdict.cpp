// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <algorithm>
#include <cmath>

#include "pipeline/images/held_out.h"
#include "pipeline/output_words.h"
#include "pipeline/report/experience.h"
#include "pipeline/report/page.h"

namespace zsq::pipeline {
namespace {

constexpr const char *kNothing = "nothing can be said", *kNoExperience = "no experience",
                     *kOtherwise = "decides otherwise than the float network too often";

const char* number_in_words(int n) {
  constexpr const char* kWords[] = {"no",    "one",   "two",  "three", "four",   "five",  "six",
                                    "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  return n < static_cast<int>(std::size(kWords)) ? kWords[n] : "more than twelve";
}

std::string images_in_words(const SyntheticResult& result) {
  return (result.kind == "dead_leaves" ? "dead-leaves" : result.kind) + " images";
}

// "networks of 8 to 1000 classes"
std::string range_in_words(const Experience& known) {
  const std::string kind = known.kind, most = outputs_in_words(kind, known.most);
  return "networks of " + (known.fewest == known.most
                               ? most
                               : format("%lld to ", static_cast<long long>(known.fewest)) + most);
}

std::string too_alike(const SyntheticResult& result, const std::string& kind) {
  if (kind == "values")
    return format(
        "%s: the float network gives the same values for all %s, so they cannot tell a "
        "good network from a ruined one; measure on real ones (zsq compare --data), or "
        "check the preprocessing (--preset)",
        kNothing, images_in_words(result).c_str());
  return format(
      "%s: the float network names one %s for %.0f %% of the %s, so they cannot tell a "
      "good network from a ruined one; measure on real ones (--eval_data), or check the "
      "preprocessing (--preset)",
      kNothing, kind == "scores" ? "label" : "class", 100 * result.largest_share,
      images_in_words(result).c_str());
}

std::string without_experience(const std::vector<SyntheticResult>& synthetic,
                               const std::string& kind, std::int64_t outputs) {
  const PooledResult all = pool(synthetic);
  return format(
      "%s with networks of %s: %s on %lld held-out synthetic images; measure on real ones",
      kNoExperience, outputs_in_words(kind, outputs).c_str(),
      measures_in_words(kind, outputs, all.divergence, all.agreement).c_str(),
      static_cast<long long>(all.images));
}

std::string veto(const SyntheticResult& lowest, const std::string& kind, std::int64_t outputs,
                 double bound) {
  return format("%s: %s on %s, and networks that were as good as theirs had %s of %.1f %% at least",
                kOtherwise,
                measures_in_words(kind, outputs, lowest.divergence, lowest.agreement).c_str(),
                images_in_words(lowest).c_str(), kind == "values" ? "a similarity" : "an agreement",
                100 * bound);
}

}  // namespace

double can_tell_apart(const std::string& images, const std::string& kind, std::int64_t outputs) {
  if (images == "dead_leaves" || kind == "values") return 0.95;
  const double classes = kind == "scores" && outputs == 1 ? 2 : static_cast<double>(outputs);
  return (1 + 1 / std::max(classes, 1.0)) / 2 + 0.05;
}

std::string verdict_on(const std::vector<SyntheticResult>& synthetic, const std::string& kind,
                       std::int64_t outputs) {
  if (synthetic.empty()) return "";
  for (const SyntheticResult& result : synthetic)
    if (result.largest_share > can_tell_apart(result.kind, kind, outputs))
      return too_alike(result, kind);
  const Experience* known = experience_with(kind, outputs);
  if (!known) return without_experience(synthetic, kind, outputs);
  const double divergence = pool(synthetic).divergence;
  // NaN is below no bound.
  const Band& band = *std::find_if(known->bands.begin(), known->bands.end() - 1,
                                   [&](const Band& b) { return divergence < b.below; });
  const auto& lowest = *std::min_element(synthetic.begin(), synthetic.end(),
                                         [](const SyntheticResult& a, const SyntheticResult& b) {
                                           return !(a.agreement >= b.agreement);
                                         });
  if (std::string(band.mood) == "good" && !(lowest.agreement >= known->agreement))
    return veto(lowest, kind, outputs, known->agreement);
  return format(
      "%s: runs of %s with such a divergence lost %.1f to %.1f %s (medians of %s networks; "
      "at most %.1f)",
      band.words, range_in_words(*known).c_str(), band.least, band.most, known->lost,
      number_in_words(band.networks), band.largest);
}

std::string verdict_on(const Accuracy& teacher, const Accuracy& student) {
  const double lost = teacher.top1 - student.top1;
  return (lost > 0.005 ? format("loses %.2f points of top-1", lost)
                       : "as accurate as the float network") +
         format(": %.2f %% instead of %.2f %% on %lld real images", student.top1, teacher.top1,
                static_cast<long long>(student.images));
}

std::string mood_of(const std::string& verdict) {
  if (verdict.starts_with(kNothing) || verdict.starts_with(kNoExperience)) return "fair";
  const std::string mood = mood_of_band(verdict);
  return mood.empty() ? "bad" : mood;
}

}  // namespace zsq::pipeline
