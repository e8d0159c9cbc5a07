// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "pipeline/report/experience.h"
#include "pipeline/report/output_words.h"
#include "pipeline/report/page.h"
#include "pipeline/report/quality.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

constexpr const char *kNothing = "nothing can be said", *kNoExperience = "no experience",
                     *kOtherwise = "decides otherwise than the float network too often",
                     *kAsAccurate = "as accurate as the float network", *kLoses = "loses ",
                     *kSaturated = "on x86 processors without VNNI, where sums saturate, ",
                     *kUnconfirmed =
                         "if its pixels are as the preprocessing says, which nothing in the file "
                         "confirms, ";

// Points of top-1 on real images.
constexpr double kMostOfGood = 1, kMostOfFair = 5;
// Of fewer real images that are all decided alike, a network may lose three points and more of all.
constexpr std::int64_t kFewestImages = 100;
constexpr double kAgreementOfClasses = 0.85;
// Below it a network of a kind that was not measured is no good one either.
constexpr double kAgreementOfAny = 0.85;

// A network that was trained is right on a tenth of what chance is not.
double least_of_teacher(const std::string& kind, std::int64_t outputs) {
  if (outputs < 1) return 0;  // not known
  const double chance = kind == "scores" && outputs == 1 ? 50 : 100 / static_cast<double>(outputs);
  return chance + (100 - chance) / 10;
}

const char* number_in_words(int n) {
  constexpr const char* kWords[] = {"no",    "one",   "two",  "three", "four",   "five",  "six",
                                    "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  return n < static_cast<int>(std::size(kWords)) ? kWords[n] : "more than twelve";
}

// "networks of 8 to 1000 classes"
std::string range_in_words(const Experience& known) {
  const std::string kind = known.kind, most = outputs_in_words(kind, known.most);
  return "networks of " + (known.fewest == known.most
                               ? most
                               : format("%lld to ", static_cast<long long>(known.fewest)) + most);
}

std::string too_alike(const SyntheticResult& result, const std::string& kind) {
  if (!has_labels(kind))
    return format(
        "%s: the float network gives the same values for all %s images, so they cannot tell a "
        "good network from a ruined one; measure on real ones (zsq compare --data), or "
        "check the preprocessing (--preset)",
        kNothing, images_in_words(result.kind).c_str());
  return format(
      "%s: the float network names one %s for %.0f %% of the %s images, so they cannot tell a "
      "good network from a ruined one; measure on real ones (--eval_data), or check the "
      "preprocessing (--preset)",
      kNothing, kind == "scores" ? "label" : "class", 100 * result.largest_share,
      images_in_words(result.kind).c_str());
}

const SyntheticResult& lowest_agreement(const std::vector<SyntheticResult>& synthetic) {
  return *std::min_element(synthetic.begin(), synthetic.end(),
                           [](const SyntheticResult& a, const SyntheticResult& b) {
                             return !(a.agreement >= b.agreement);
                           });
}

// Of several outputs the measures above are the lowest and the sum.
std::string least_output(const SyntheticResult& result) {
  if (result.outputs.size() < 2) return "";
  const auto least = std::ranges::min_element(result.outputs, {}, &OutputResult::agreement);
  return format("; '%s' agrees least, by %.4f on %s images", least->name.c_str(), least->agreement,
                images_in_words(result.kind).c_str());
}

std::string without_experience(const std::vector<SyntheticResult>& synthetic,
                               const std::string& kind, std::int64_t outputs) {
  const PooledResult all = pool(synthetic);
  const SyntheticResult& lowest = lowest_agreement(synthetic);
  if (!(lowest.agreement >= kAgreementOfAny))
    return format("%s: %s on %s images", kOtherwise,
                  measures_in_words(kind, outputs, lowest.divergence, lowest.agreement).c_str(),
                  images_in_words(lowest.kind).c_str()) +
           least_output(lowest);
  return format(
      "%s with networks of %s: %s on %lld held-out synthetic images%s; measure on real ones",
      kNoExperience, outputs_in_words(kind, outputs).c_str(),
      measures_in_words(kind, outputs, all.divergence, all.agreement).c_str(),
      static_cast<long long>(all.images), least_output(lowest).c_str());
}

std::string veto(const SyntheticResult& lowest, const std::string& kind, std::int64_t outputs,
                 double bound) {
  return format(
      "%s: %s on %s images, and networks that were as good as theirs had %s of %.1f %% at least",
      kOtherwise, measures_in_words(kind, outputs, lowest.divergence, lowest.agreement).c_str(),
      images_in_words(lowest.kind).c_str(), has_labels(kind) ? "an agreement" : "a similarity",
      100 * bound);
}

}  // namespace

double can_tell_apart(const std::string& images, const std::string& kind, std::int64_t outputs) {
  if (images != "optimised" || !has_labels(kind)) return 0.95;
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
  const auto is_good = [](const Band& band) { return std::string(band.mood) == "good"; };
  const auto last = known->bands.end() - 1;
  auto band =
      std::find_if(known->bands.begin(), last, [&](const Band& b) { return divergence < b.below; });
  const SyntheticResult& lowest = lowest_agreement(synthetic);
  while (is_good(*band) && !(lowest.agreement >= band->agreement)) {
    if (band == last || !is_good(band[1])) return veto(lowest, kind, outputs, band->agreement);
    ++band;
  }
  return format(
      "%s: runs of %s with such a divergence%s lost %.1f to %.1f %s (medians of %s network%s; "
      "at most %.1f)",
      band->words, range_in_words(*known).c_str(), is_good(*band) ? " and agreement" : "",
      band->least, band->most, known->lost, number_in_words(band->networks),
      band->networks == 1 ? "" : "s", band->largest);
}

std::string verdict_on_real(const RealResult& real, const std::string& kind, std::int64_t outputs) {
  const auto images = static_cast<long long>(real.student.images);
  const std::string figures = format("%.2f %% instead of %.2f %% on %lld real images",
                                     real.student.top1, real.teacher.top1, images);
  if (real.teacher.top1 < least_of_teacher(kind, outputs))
    return format(
        "%s: the float network itself is right on no more than %.2f %% of %lld real images, so "
        "their labels or their preprocessing (--preset) are not its own",
        kNothing, real.teacher.top1, images);
  const double lost = real.teacher.top1 - real.student.top1;
  if (lost >= kMostOfGood) return format("%s%.2f points of top-1: ", kLoses, lost) + figures;
  if (images < kFewestImages) return format("%s of so few images: ", kNothing) + figures;
  const Experience* known = experience_with(kind, outputs);
  const double bound = known ? known->bands.front().agreement : kAgreementOfClasses;
  if (real.agreement < bound)
    return format("%s: the same on %.1f %% of the real images, below %.1f %%; top-1 is ",
                  kOtherwise, 100 * real.agreement, 100 * bound) +
           figures;
  return (lost > 0.005 ? format("%s%.2f points of top-1", kLoses, lost) : kAsAccurate) + ": " +
         figures;
}

namespace {

std::string verdict_of_exact(const QuantizeReport& report) {
  if (report.student)
    return verdict_on_real({*report.teacher, *report.student, report.real_agreement.value_or(1)},
                           report.output_kind, report.outputs);
  const std::string verdict = verdict_on(report.synthetic, report.output_kind, report.outputs);
  if (verdict.empty()) return "";
  if (!report.pixel_range_known)
    return std::string(kNothing) +
           (report.pixels.starts_with("not known")
                ? ": the range of pixels is "
                : ": the preprocessing seems to be a wrong one: ") +
           report.pixels +
           ". Give the preprocessing that the network was trained with (--preset, or data.mean and "
           "data.std), or real images (--eval_data)";
  // Whatever other runs lost is no bound for images of another range.
  const bool unconfirmed = !report.pixels_confirmed && !mood_of_band(verdict).empty();
  return (unconfirmed ? kUnconfirmed : "") + verdict;
}

}  // namespace

std::string verdict_of(const QuantizeReport& report) {
  std::string verdict = verdict_of_exact(report);
  if (!report.saturation || mood_of(verdict) != "good") return verdict;
  const std::string elsewhere =
      verdict_on(report.saturation->synthetic, report.output_kind, report.outputs);
  const bool worse = !elsewhere.empty() && mood_of(elsewhere) != "good";
  return worse ? kSaturated + elsewhere : verdict;
}

std::string mood_of(const std::string& verdict) {
  for (const char* words : {kNothing, kNoExperience})
    if (verdict.starts_with(words)) return "fair";
  if (verdict.starts_with(kUnconfirmed)) {
    const std::string mood = mood_of(verdict.substr(std::strlen(kUnconfirmed)));
    return mood == "good" ? "fair" : mood;
  }
  if (verdict.starts_with(kSaturated)) return mood_of(verdict.substr(std::strlen(kSaturated)));
  if (verdict.starts_with(kAsAccurate)) return "good";
  if (verdict.starts_with(kLoses)) {
    const double points = std::atof(verdict.c_str() + std::strlen(kLoses));
    return points < kMostOfGood ? "good" : points < kMostOfFair ? "fair" : "bad";
  }
  const std::string mood = mood_of_band(verdict);
  return mood.empty() ? "bad" : mood;
}

}  // namespace zsq::pipeline
