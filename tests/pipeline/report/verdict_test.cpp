// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "pipeline/report/experience.h"
#include "pipeline/report/json.h"

namespace zsq::pipeline {
namespace {

std::string verdict_at(double divergence) {
  return verdict_on(
      {{"dead_leaves", 64, 2 * divergence, 0.9}, {"optimised", 64, divergence / 2, 0.95}});
}

TEST(Verdict, GetsWorseWithTheDivergence) {
  EXPECT_EQ(verdict_on({}), "");
  EXPECT_TRUE(verdict_at(0.01).starts_with("as good as"));
  EXPECT_TRUE(verdict_at(0.1).starts_with("nearly as good as"));
  EXPECT_TRUE(verdict_at(0.2).starts_with("a little worse than"));
  EXPECT_TRUE(verdict_at(0.3).starts_with("worse than"));
  EXPECT_TRUE(verdict_at(0.7).starts_with("much worse than"));
  EXPECT_TRUE(verdict_at(1.5).starts_with("much worse than the float network, if not unusable"));
  EXPECT_TRUE(verdict_at(5).starts_with("unusable"));
}

// A run of docs/verdict.json. Those that learned are of an earlier date, of 10 to 1,000 classes,
// and do not say what their images agree on.
struct MeasuredRun {
  explicit MeasuredRun(const Json& run)
      : kind(run.value("kind", "logits")),
        outputs(run.value("outputs", std::int64_t{10})),
        divergence(run.at("divergence")),
        loss(run.at("loss")) {
    for (const auto& [images, each] : run.at("kinds").items()) {
      const bool whole = run.contains("shares");
      seen.push_back({images, 64, each, whole ? run.at("agreements").at(images).get<double>() : 1,
                      whole ? run.at("shares").at(images).get<double>() : 0});
      tells &= seen.back().largest_share <= can_tell_apart(images, kind, outputs);
    }
  }
  std::string verdict() const { return verdict_on(seen, kind, outputs); }

  std::string kind;
  std::int64_t outputs;
  double divergence, loss;
  std::vector<SyntheticResult> seen;
  bool tells = true;
};

// By what they are experience with and by network.
std::map<const Experience*, std::map<std::string, std::vector<MeasuredRun>>> measured() {
  std::ifstream file(std::string(ZSQ_SOURCE_DIR) + "/docs/verdict.json");
  std::map<const Experience*, std::map<std::string, std::vector<MeasuredRun>>> runs;
  for (const Json& json : Json::parse(file)) {
    const MeasuredRun run(json);
    const Experience* known = experience_with(run.kind, run.outputs);
    EXPECT_NE(known, nullptr) << json.dump();
    runs[known][json.at("network")].push_back(run);
  }
  return runs;
}

// What is called as good lost a point at most or, of values, 1 % of their variance; what is called
// nearly as good 2 points or 2.5 %. Each network whose images can tell has a run that is.
TEST(Verdict, CallsGoodWhatLostLittle) {
  int networks = 0;
  for (const auto& [known, runs_of] : measured())
    for (const auto& [network, runs] : runs_of) {
      int tell = 0, good = 0;
      for (const MeasuredRun& run : runs) {
        tell += run.tells;
        const std::string verdict = run.verdict();
        if (mood_of(verdict) != "good") continue;
        ++good;
        const bool nearly = verdict.starts_with("nearly"), values = run.kind == "values";
        EXPECT_LE(run.loss, nearly ? (values ? 2.5 : 2) : 1) << network << ": " << verdict;
      }
      networks += tell > 0;
      EXPECT_TRUE(good > 0 || tell == 0) << network;
    }
  EXPECT_GE(networks, 30);
}

TEST(Verdict, OfRealImagesIsWhatTheyMeasured) {
  EXPECT_EQ(verdict_on_real({{91.64, 99, 1017}, {85.45, 98, 1017}, 0.9}),
            "loses 6.19 points of top-1: 85.45 % instead of 91.64 % on 1017 real images");
  EXPECT_EQ(verdict_on_real({{87, 98, 300}, {87.67, 98, 300}, 0.97}),
            "as accurate as the float network: 87.67 % instead of 87.00 % on 300 real images");
}

// Labels that are met by chance are no accuracy.
TEST(Verdict, OfRealImagesDoesNotCallGoodWhatDecidesOtherwise) {
  const auto at = [](double teacher, double student, std::int64_t images, double agreement,
                     std::int64_t outputs = 10) {
    return verdict_on_real({{teacher, 99, images}, {student, 99, images}, agreement}, "logits",
                           outputs);
  };
  EXPECT_EQ(mood_of(at(60, 59.5, 1000, 0.9)), "good");
  EXPECT_EQ(at(60, 59.5, 1000, 0.9),
            "loses 0.50 points of top-1: 59.50 % instead of 60.00 % on "
            "1000 real images");
  EXPECT_EQ(mood_of(at(60, 60, 1000, 0.7)), "bad");
  EXPECT_EQ(at(60, 60, 1000, 0.7),
            "decides otherwise than the float network too often: the same on 70.0 % of the real "
            "images, below 85.0 %; top-1 is 60.00 % instead of 60.00 % on 1000 real images");
  // of two classes the same share is worth less
  EXPECT_EQ(mood_of(at(80, 80, 1000, 0.9, 2)), "bad");
  // what is measured with the wrong labels or preprocessing tells nothing
  EXPECT_EQ(mood_of(at(10.5, 10.5, 1000, 1)), "fair");
  EXPECT_TRUE(at(10.5, 10.5, 1000, 1).starts_with("nothing can be said: the float network itself"));
  EXPECT_EQ(mood_of(at(10.5, 10.5, 1000, 1, 1000)), "good");
  EXPECT_EQ(mood_of(at(52, 52, 1000, 1, 2)), "fair");
  // and so do a few images, but for what they have lost
  EXPECT_TRUE(at(60, 60, 20, 1).starts_with("nothing can be said of so few images"));
  EXPECT_TRUE(at(60, 40, 20, 0.6).starts_with("loses 20.00 points"));
  EXPECT_EQ(mood_of(at(60, 40, 20, 0.6)), "bad");
}

// What only the user says of the pixels is a condition.
TEST(Verdict, OfPixelsThatNothingConfirmsIsNotCalledGood) {
  QuantizeReport report;
  report.outputs = 10;
  report.synthetic = {{"dead_leaves", 64, 1e-3, 0.98, 0.5}, {"optimised", 64, 1e-4, 1, 0.1}};
  EXPECT_EQ(mood_of(verdict_of(report)), "good");
  report.pixels_confirmed = false;
  EXPECT_EQ(mood_of(verdict_of(report)), "fair");
  EXPECT_TRUE(verdict_of(report).starts_with(
      "if its pixels are as the preprocessing says, which nothing in the file confirms, as good as "
      "the float network: "))
      << verdict_of(report);
  // what other runs lost is said under the same condition, and what is bad stays so
  QuantizeReport ruined = report;
  ruined.synthetic = {{"dead_leaves", 64, 1.5, 0.9, 0.5}, {"optimised", 64, 1.5, 0.95, 0.1}};
  ruined.pixels_confirmed = true;
  const std::string without = verdict_of(ruined);
  EXPECT_EQ(mood_of(without), "bad");
  ruined.pixels_confirmed = false;
  EXPECT_TRUE(verdict_of(ruined).starts_with("if its pixels are as")) << verdict_of(ruined);
  EXPECT_TRUE(verdict_of(ruined).ends_with(without));
  EXPECT_EQ(mood_of(verdict_of(ruined)), "bad");
  report.pixel_range_known = false;
  report.pixels = "not known: why";
  EXPECT_TRUE(verdict_of(report).starts_with(
      "nothing can be said: the range of pixels is not known: why. Give the preprocessing"));
  report.pixels = "its pixels are others";
  EXPECT_TRUE(
      verdict_of(report).starts_with("nothing can be said: the preprocessing seems to be a wrong "
                                     "one: its pixels are others. Give"));
  // real images are measured as they are
  report.teacher = Accuracy{90, 99, 500};
  report.student = Accuracy{89.9, 99, 500};
  report.real_agreement = 0.99;
  EXPECT_EQ(mood_of(verdict_of(report)), "good");
  report.real_agreement = 0.8;
  EXPECT_EQ(mood_of(verdict_of(report)), "bad");
  EXPECT_EQ(verdict_of(QuantizeReport()), "");
}

// A file that computes something else on half of the machines is not good.
TEST(Verdict, IsThatOfTheProcessorsThatSaturate) {
  QuantizeReport report;
  report.outputs = 10;
  report.synthetic = {{"dead_leaves", 64, 1e-3, 0.98, 0.5}, {"optimised", 64, 1e-4, 1, 0.1}};
  report.saturation = SaturationResult{};
  const std::string good = verdict_of(report);
  EXPECT_EQ(mood_of(good), "good");
  report.saturation->synthetic = {{"dead_leaves", 64, 2, 0.5, 0.5}, {"optimised", 64, 2, 0.4, 0.1}};
  EXPECT_EQ(mood_of(verdict_of(report)), "bad");
  EXPECT_TRUE(verdict_of(report).starts_with(
      "on x86 processors without VNNI, where sums saturate, unusable"))
      << verdict_of(report);
  report.saturation->synthetic = report.synthetic;
  EXPECT_EQ(verdict_of(report), good);
}

TEST(Verdict, HasAMood) {
  EXPECT_EQ(mood_of(verdict_at(0.1)), "good");
  EXPECT_EQ(mood_of(verdict_at(0.2)), "fair");
  EXPECT_EQ(mood_of(verdict_at(0.3)), "fair");
  EXPECT_EQ(mood_of(verdict_at(0.7)), "bad");
  EXPECT_EQ(mood_of("unlike anything that it says"), "bad");
}

// A low agreement on one kind of images is enough, however small the divergence is.
TEST(Verdict, NeverCallsGoodWhatDecidesOtherwise) {
  const std::string verdict =
      verdict_on({{"dead_leaves", 64, 1e-4, 0.828}, {"optimised", 64, 1e-5, 1}}, "logits", 2);
  EXPECT_EQ(mood_of(verdict), "bad") << verdict;
  EXPECT_NE(verdict.find("82.8 % with the teacher"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("dead-leaves images"), std::string::npos) << verdict;
  EXPECT_EQ(mood_of(verdict_on({{"dead_leaves", 64, 1e-4, 1}, {"optimised", 64, 1e-5, NAN}})),
            "bad");
  // of ten classes less is enough for "nearly"
  const auto of_ten = [](double agreement) {
    return verdict_on({{"dead_leaves", 64, 1e-4, agreement}, {"optimised", 64, 1e-5, 1}}, "logits",
                      10);
  };
  EXPECT_TRUE(of_ten(0.84).starts_with("nearly as good as")) << of_ten(0.84);
  EXPECT_EQ(mood_of(of_ten(0.64)), "bad");
  EXPECT_EQ(mood_of(verdict_on({{"dead_leaves", 64, NAN, 1}, {"optimised", 64, 1e-5, 1}})), "bad");
}

TEST(Verdict, SaysWhereThereIsNoExperience) {
  const std::vector<SyntheticResult> fine{{"dead_leaves", 64, 1e-4, 1}, {"optimised", 64, 1e-5, 1}};
  const std::string verdict = verdict_on(fine, "logits", 21841);
  EXPECT_TRUE(verdict.starts_with("no experience with networks of 21841 classes")) << verdict;
  EXPECT_NE(verdict.find("100.0 % with the teacher, KL 0.0000"), std::string::npos) << verdict;
  EXPECT_EQ(mood_of(verdict), "fair");
}

// A detector whose scores are gone is bad, whatever was measured of other kinds.
TEST(Verdict, WithoutExperienceLowAgreementIsBadAllTheSame) {
  const std::vector<SyntheticResult> good{{"dead_leaves", 64, 0.01, 0.97, 0}},
      lost{{"dead_leaves", 64, 0.01, 0.97, 0}, {"optimised", 16, 0.0001, 0.09, 0}};
  EXPECT_EQ(mood_of(verdict_on(good, "score_map", 153600)), "fair");
  const std::string verdict = verdict_on(lost, "score_map", 153600);
  EXPECT_EQ(mood_of(verdict), "bad");
  EXPECT_NE(verdict.find("9.0 % with the teacher (overlap of the scores)"), std::string::npos)
      << verdict;
}

// Nothing that the network says the same of tells students apart.
TEST(Verdict, SaysNothingWhereTheNetworkNamesOneClass) {
  const auto at = [](double leaves, double optimised, const char* kind, std::int64_t outputs) {
    return mood_of(
        verdict_on({{"dead_leaves", 64, 1e-4, 1, leaves}, {"optimised", 64, 1e-5, 1, optimised}},
                   kind, outputs));
  };
  EXPECT_EQ(at(0.9, 0.1, "logits", 10), "good");
  EXPECT_EQ(at(0.97, 0.1, "logits", 10), "fair");
  EXPECT_EQ(at(0.9, 0.7, "logits", 10), "fair");
  EXPECT_EQ(at(0, 1, "values", 4), "fair");
  EXPECT_TRUE(verdict_on({{"dead_leaves", 64, 1e-4, 1, 0.97}}, "logits", 10)
                  .starts_with("nothing can be said"));
}

// Of two middle ones their mean.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

// What it says is what the stored runs of the networks lost.
TEST(Verdict, SaysWhatTheMeasuredRunsLost) {
  const auto all = measured();
  EXPECT_EQ(all.size(), 7U);
  for (const auto& [known, networks] : all) {
    double from = 0;
    for (const Band& band : known->bands) {
      double least = 1000, most = 0, largest = 0;
      int count = 0;
      for (const auto& [network, runs] : networks) {
        std::vector<double> lost;
        for (const MeasuredRun& run : runs) {
          const bool good = std::string(band.mood) == "good";
          const bool here = run.divergence >= from && run.divergence < band.below;
          if (good ? run.verdict().starts_with(band.words) : here) lost.push_back(run.loss);
        }
        if (lost.empty()) continue;
        ++count;
        least = std::min(least, std::max(median(lost), 0.0));
        most = std::max(most, median(lost));
        largest = std::max(largest, *std::max_element(lost.begin(), lost.end()));
      }
      const std::string where = std::string(known->kind) + " " + std::to_string(known->fewest) +
                                ", below " + std::to_string(band.below);
      EXPECT_EQ(band.networks, count) << where;
      EXPECT_NEAR(band.least, least, 0.051) << where;
      EXPECT_NEAR(band.most, most, 0.051) << where;
      EXPECT_NEAR(band.largest, largest, 0.051) << where;
      from = band.below;
    }
  }
  EXPECT_NE(verdict_at(0.3).find("lost 1.6 to 13.5 points of top-1 (medians of five networks; at "
                                 "most 13.5)"),
            std::string::npos)
      << verdict_at(0.3);
}

}  // namespace
}  // namespace zsq::pipeline
