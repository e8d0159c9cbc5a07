// SPDX-License-Identifier: Apache-2.0
#include "eval/box_measures.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zsq::eval {
namespace {

constexpr std::size_t kThresholds = 10, kRecalls = 101, kMostDetections = 100;

// As numpy.linspace(0.5, 0.95, 10) rounds them, which decides where an IoU is one of them.
double threshold(std::size_t i) {
  return i + 1 == kThresholds ? 0.95 : 0.5 + static_cast<double>(i) * ((0.95 - 0.5) / 9);
}

struct AreaRange {
  double least, most;
  bool holds(double area) const { return area >= least && area <= most; }
};
constexpr double kUnlimited = 1e10;
constexpr AreaRange kAll{0, kUnlimited}, kSmall{0, 32 * 32}, kMedium{32 * 32, 96 * 96},
    kLarge{96 * 96, kUnlimited};

double area_of(const Box& box) { return box.width * box.height; }

double overlap(const Box& detection, const TrueBox& truth) {
  const Box& box = truth.box;
  const double width = std::min(detection.left + detection.width, box.left + box.width) -
                       std::max(detection.left, box.left);
  const double height = std::min(detection.top + detection.height, box.top + box.height) -
                        std::max(detection.top, box.top);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  const double either = truth.crowd ? area_of(detection) : area_of(detection) + area_of(box) - both;
  return both / either;
}

// One category in one image: the best detections, best first, and overlaps [detection][truth].
struct Pairs {
  std::vector<const TrueBox*> truth;
  std::vector<const Detection*> detections;
  std::vector<std::vector<double>> overlaps;
};

Pairs pairs_of(const ImageBoxes& image, std::int64_t category) {
  Pairs pairs;
  for (const TrueBox& truth : image.truth)
    if (truth.category == category) pairs.truth.push_back(&truth);
  for (const Detection& detection : image.detections)
    if (detection.category == category) pairs.detections.push_back(&detection);
  std::ranges::stable_sort(pairs.detections,
                           [](const auto* a, const auto* b) { return a->score > b->score; });
  if (pairs.detections.size() > kMostDetections) pairs.detections.resize(kMostDetections);
  for (const Detection* detection : pairs.detections) {
    auto& row = pairs.overlaps.emplace_back();
    for (const TrueBox* truth : pairs.truth) row.push_back(overlap(detection->box, *truth));
  }
  return pairs;
}

enum class Outcome : std::uint8_t { wrong, right, ignored };

struct Judged {
  double score = 0;
  std::array<Outcome, kThresholds> at{};
};

struct Tally {
  std::vector<Judged> detections;
  std::int64_t positives = 0;  // boxes that are to be found
};

// Each detection, best first, takes the box that it overlaps most of those that are left, and an
// ignored box only if there is no other.
void judge(const Pairs& pairs, AreaRange areas, Tally& tally) {
  const std::size_t first = tally.detections.size();
  for (const Detection* detection : pairs.detections)
    tally.detections.push_back({detection->score, {}});
  std::vector<bool> ignored;
  std::vector<std::size_t> order;
  for (const TrueBox* truth : pairs.truth) {
    ignored.push_back(truth->crowd || !areas.holds(truth->area));
    order.push_back(order.size());
  }
  std::ranges::stable_partition(order, [&](std::size_t g) { return !ignored[g]; });
  tally.positives += std::ranges::count(ignored, false);
  for (std::size_t t = 0; t < kThresholds; ++t) {
    std::vector<bool> taken(order.size());
    for (std::size_t d = 0; d < pairs.detections.size(); ++d) {
      double best = threshold(t);
      std::size_t match = order.size();
      for (const std::size_t g : order) {
        if (taken[g] && !pairs.truth[g]->crowd) continue;
        if (ignored[g] && match < order.size() && !ignored[match]) break;
        if (pairs.overlaps[d][g] < best) continue;
        best = pairs.overlaps[d][g];
        match = g;
      }
      Outcome& outcome = tally.detections[first + d].at[t];
      if (match == order.size()) {
        if (!areas.holds(area_of(pairs.detections[d]->box))) outcome = Outcome::ignored;
        continue;
      }
      taken[match] = true;
      outcome = ignored[match] ? Outcome::ignored : Outcome::right;
    }
  }
}

struct Curve {
  double precision = 0;  // mean over the recalls
  double recall = 0;     // the highest
};

// `tally`: best detection first.
Curve curve_of(const Tally& tally, std::size_t t) {
  std::vector<double> precision, recall;
  double right = 0, wrong = 0;
  for (const Judged& detection : tally.detections) {
    if (detection.at[t] == Outcome::ignored) continue;
    (detection.at[t] == Outcome::right ? right : wrong) += 1;
    precision.push_back(right / (right + wrong));
    recall.push_back(right / static_cast<double>(tally.positives));
  }
  if (recall.empty()) return {};
  for (std::size_t i = precision.size() - 1; i > 0; --i)
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double sum = 0;
  for (std::size_t r = 0; r < kRecalls; ++r) {
    const auto reached = std::ranges::lower_bound(recall, static_cast<double>(r) * 0.01);
    if (reached != recall.end())
      sum += precision[static_cast<std::size_t>(reached - recall.begin())];
  }
  return {sum / kRecalls, recall.back()};
}

struct Mean {
  double sum = 0, count = 0;
  void add(double value) { sum += value, count += 1; }
  double per_cent() const { return count > 0 ? 100 * sum / count : BoxMeasures::kNone; }
};

struct Means {
  Mean precision, recall, at_50, at_75;
};

void add_category(const std::vector<Pairs>& images, AreaRange areas, Means& means) {
  Tally tally;
  for (const Pairs& image : images) judge(image, areas, tally);
  if (tally.positives == 0) return;
  std::ranges::stable_sort(tally.detections, std::ranges::greater{}, &Judged::score);
  for (std::size_t t = 0; t < kThresholds; ++t) {
    const Curve curve = curve_of(tally, t);
    means.precision.add(curve.precision);
    means.recall.add(curve.recall);
    if (t == 0) means.at_50.add(curve.precision);
    if (t == 5) means.at_75.add(curve.precision);
  }
}

}  // namespace

BoxMeasures measure_boxes(const std::vector<ImageBoxes>& images, std::int64_t categories) {
  Means all, small, medium, large;
  for (std::int64_t category = 0; category < categories; ++category) {
    std::vector<Pairs> pairs;
    for (const ImageBoxes& image : images) pairs.push_back(pairs_of(image, category));
    add_category(pairs, kAll, all);
    add_category(pairs, kSmall, small);
    add_category(pairs, kMedium, medium);
    add_category(pairs, kLarge, large);
  }
  BoxMeasures result{all.precision.per_cent(),   all.at_50.per_cent(),
                     all.at_75.per_cent(),       all.recall.per_cent(),
                     small.precision.per_cent(), medium.precision.per_cent(),
                     large.precision.per_cent()};
  for (const ImageBoxes& image : images) {
    result.boxes += std::ranges::count(image.truth, false, &TrueBox::crowd);
    result.detections += std::ssize(image.detections);
  }
  return result;
}

}  // namespace zsq::eval
