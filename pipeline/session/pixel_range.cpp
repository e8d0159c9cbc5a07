// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/pixel_range.h"

#include <ATen/ops/lerp.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/seed.h"
#include "generator/dead_leaves.h"
#include "pipeline/session/format.h"
#include "pipeline/session/pixel_constants.h"
#include "pipeline/session/pixel_statistics.h"

namespace zsq::pipeline {
namespace {

using Values = std::vector<double>;  // one per channel, or one for all

struct Candidate {
  std::string name;
  Values lowest, highest;
  double low, high;  // of the family of such preprocessings, whose means and deviations differ
};

// Means and deviations that people divide by are like ImageNet's; CIFAR's give the widest range.
std::vector<Candidate> candidates(std::int64_t channels) {
  const auto plain = [](const char* name, double low, double high) {
    return Candidate{name, {low}, {high}, low, high};
  };
  std::vector<Candidate> all{plain("0..255", 0, 255), plain("0..1", 0, 1), plain("-1..1", -1, 1),
                             plain("-0.5..0.5", -0.5, 0.5), plain("-128..127", -128, 127)};
  if (channels == 3) {
    all.push_back({"ImageNet's mean and deviation",
                   {-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225},
                   {0.515 / 0.229, 0.544 / 0.224, 0.594 / 0.225},
                   -2.43,
                   2.76});
    all.push_back({"0..255 without ImageNet's mean",
                   {-103.939, -116.779, -123.68},
                   {151.061, 138.221, 131.32},
                   -123.68,
                   151.061});
  }
  if (channels == 1) {
    all.push_back({"MNIST's mean and deviation", {-0.4242}, {2.8215}, -0.4242, 2.8215});
    all.push_back({"ImageNet's mean and deviation", {-2.0}, {2.44}, -2.43, 2.76});
  }
  return all;
}

struct Content {
  const char* name;
  at::Tensor shares;  // of the range, f32 [N, C, H, W]
  double mean, deviation;
};

Content content_of(const char* name, at::Tensor shares) {
  const double mean = shares.mean().item<double>(), deviation = shares.std().item<double>();
  return {name, std::move(shares), mean, deviation};
}

// Images with one channel are often of digits or of text.
std::vector<Content> contents(const std::array<std::int64_t, 3>& shape) {
  constexpr std::int64_t kPixels = 400'000;
  const auto n = std::clamp<std::int64_t>(kPixels / (shape[1] * shape[2]), 8, 32);
  const auto leaves = generator::dead_leaves_images(0, n, shape, stream_seed(0, "pixel_range", 0));
  std::vector<Content> all{content_of("photographs", leaves)};
  if (shape[0] != 1) return all;
  const auto dark = leaves.sub(0.75).mul(8).clamp(0, 1);
  all.push_back(content_of("digits", dark));
  all.push_back(content_of("text", dark.neg().add(1)));
  return all;
}

at::Tensor in_range(const at::Tensor& shares, const Values& lowest, const Values& highest) {
  const auto of = [](const Values& values) {
    return at::tensor(values, at::kFloat).view({-1, 1, 1});
  };
  return at::lerp(of(lowest), of(highest), shares);
}

double mean_of(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

struct Fit {
  const Candidate* range;
  double loss;  // of the content that fits best
};

// How far the pixels of training may lie from the mean of images, in their deviations.
constexpr double kFarthestMean = 0.45;

// Best first; only such as can have the mean that the pixels had in training.
std::vector<Fit> fits_of(const PixelStatistics& statistics, const std::vector<Candidate>& ranges,
                         const std::vector<Content>& shown) {
  const auto pixel = statistics.mean_pixel();
  std::vector<Fit> fits;
  for (const Candidate& range : ranges) {
    const double low = mean_of(range.lowest), width = mean_of(range.highest) - low;
    std::optional<double> loss;
    for (const Content& content : shown) {
      const double mean = low + width * content.mean;
      if (pixel && std::abs(*pixel - mean) > kFarthestMean * width * content.deviation) continue;
      const double found = statistics.loss(in_range(content.shares, range.lowest, range.highest));
      loss = std::min(loss.value_or(found), found);
    }
    if (loss) fits.push_back({&range, *loss});
  }
  std::sort(fits.begin(), fits.end(), [](const Fit& a, const Fit& b) { return a.loss < b.loss; });
  return fits;
}

bool alike(const Candidate& a, const Candidate& b) {
  constexpr double kShare = 0.15;
  const double width = std::max(a.high - a.low, b.high - b.low);
  return std::abs(a.low - b.low) < kShare * width && std::abs(a.high - b.high) < kShare * width;
}

PixelRange by_statistics(const PixelStatistics& statistics, const std::vector<Candidate>& ranges,
                         const std::vector<Content>& shown) {
  constexpr double kLargest = 0.5, kFactor = 2, kApart = 0.1;
  const auto fits = fits_of(statistics, ranges, shown);
  const std::string layer = "BatchNorm of '" + statistics.first_layer() + "'";
  if (fits.empty() || fits[0].loss > kLargest)
    return {.reason = "what the " + layer + " saw in training is like none of the common ranges"};
  const Fit& best = fits[0];
  const auto fits_as_well = [&](const Fit& fit) {
    return fit.loss < std::max(kFactor * best.loss, best.loss + kApart);
  };
  PixelRange chosen{best.range->low, best.range->high, best.range->name, ""};
  // Of ranges that are nearly the same each serves, and both together do best.
  std::size_t next = 1;
  for (; next < fits.size() && alike(*best.range, *fits[next].range); ++next) {
    if (!fits_as_well(fits[next])) continue;
    chosen.low = std::min(chosen.low, fits[next].range->low);
    chosen.high = std::max(chosen.high, fits[next].range->high);
  }
  const bool others = next < fits.size();
  if (others && fits_as_well(fits[next]))
    return {.reason = format("what the %s saw in training fits %s and %s (losses %.2f and %.2f)",
                             layer.c_str(), best.range->name.c_str(),
                             fits[next].range->name.c_str(), best.loss, fits[next].loss)};
  chosen.reason =
      "inferred from the " + layer + format(" (loss %.2f", best.loss) +
      (others ? format(" against %.2f of %s)", fits[next].loss, fits[next].range->name.c_str())
              : std::string(", and in no other range can pixels have had their mean)"));
  return chosen;
}

// What a preprocessing leaves is about 1 to 6 wide or has lost the mean of 0..255.
PixelRange by_constants(const models::Model& model) {
  const auto found = constants_before(model);
  if (!found) return {};
  const auto [scale, shift] = *found;
  const auto chosen = [&](double high, const char* name) {
    return PixelRange{0, high, name,
                      format("inferred from the constants before the first layer, which make %.4g "
                             "x %+.4g of a pixel x",
                             scale, shift)};
  };
  const bool narrows = scale >= 1.0 / 260 && scale <= 6.5 / 255;
  const bool centres = scale > 0.9 && scale < 1.1 && shift < -90 && shift > -140;
  if (narrows || centres) return chosen(255, "0..255");
  if (scale >= 1.8 && scale <= 6.5 && shift < -0.4 * scale + 0.2) return chosen(1, "0..1");
  return {};
}

// Measured on ten networks in the range of their training: uncertainty 0.16 to 0.73, information
// 0.025 to 0.35, one-sided channels 0 to 0.41. In ranges a hundred times too wide the uncertainty
// of those without ReLU6 was 0.04 at most; in ranges a hundred times too narrow the information
// was 0.000 and 0.38 to 1 of the channels one-sided. ReLU6 keeps a network from being certain: of
// what EfficientNet-Lite0's first one lets through, 0.05 is at the ceiling, 0.31 of pixels five
// times too large and 0.9 of such as are a hundred times.
std::string contradiction_without_statistics(const models::Model& model, const Candidate& given) {
  constexpr double kCertain = 0.05, kAlike = 0.005, kOneSided = 0.7, kAtCeiling = 0.5;
  const Content leaves = contents(model.graph.input_shape).front();
  const auto images = in_range(leaves.shares, given.lowest, given.highest);
  const PredictionSpread spread = spread_of_predictions(model, images);
  const std::string seen =
      "its pixels are not those that the network was trained with: on dead-leaves images of them "
      "it ";
  if (spread.uncertainty < kCertain)
    return seen + format("is certain of everything (mean entropy %.1f %% of the largest)",
                         100 * spread.uncertainty);
  if (spread.information < kAlike)
    return seen + format("predicts the same for everything (information %.2f %% of the largest)",
                         100 * spread.information);
  // A share that is halved where the pixels are of another common range.
  const auto strange = [&](const auto& share_of, double least, const char* what) -> std::string {
    const double share = share_of(model, images);
    if (!(share >= least)) return "";
    for (const Candidate& range : candidates(model.graph.input_shape[0])) {
      const double other = share_of(model, in_range(leaves.shares, range.lowest, range.highest));
      if (other <= share / 2)
        return seen + format("has %.0f %% of %s, and %.0f %% of it on pixels of %s", 100 * share,
                             what, 100 * other, range.name.c_str());
    }
    return "";
  };
  const std::string wrong = strange(one_sided_channels, kOneSided,
                                    "its first convolution's channels without a change of sign");
  if (!wrong.empty()) return wrong;
  return strange(share_at_ceiling, kAtCeiling,
                 "what passes its first ReLU6 at the ceiling of that");
}

}  // namespace

bool can_tell_pixels(const models::Model& model) {
  return PixelStatistics(model).any() || by_constants(model).known();
}

std::string PixelRange::in_words() const {
  return known() ? name + ", " + reason : "not known: " + reason;
}

PixelRange infer_pixel_range(const models::Model& model) {
  const PixelStatistics statistics(model);
  PixelRange found{.reason = "the file gives no preprocessing and has no BatchNorm to tell it"};
  const auto ranges = candidates(model.graph.input_shape[0]);
  if (statistics.any())
    found = by_statistics(statistics, ranges, contents(model.graph.input_shape));
  if (found.known()) return found;
  const PixelRange told = by_constants(model);
  return told.known() ? told : found;
}

std::string contradiction(const models::Model& model, const eval::Preprocessing& given) {
  constexpr double kLeast = 1, kFactor = 5, kFarMean = 1.2;
  const PixelStatistics statistics(model);
  Candidate own{"the preprocessing", {}, {}, 0, 0};
  for (std::size_t c = 0; c < given.mean.size(); ++c) {
    own.lowest.push_back(given.value(0, c));
    own.highest.push_back(given.value(255, c));
  }
  if (!statistics.any()) return contradiction_without_statistics(model, own);
  const auto shown = contents(model.graph.input_shape);
  const double low = mean_of(own.lowest), width = mean_of(own.highest) - low;
  const auto pixel = statistics.mean_pixel();
  double loss = std::numeric_limits<double>::infinity(), farthest = loss;
  for (const Content& content : shown) {
    loss = std::min(loss, statistics.loss(in_range(content.shares, own.lowest, own.highest)));
    const double mean = low + width * content.mean, deviation = width * content.deviation;
    farthest = std::min(farthest, pixel ? std::abs(*pixel - mean) / deviation : 0);
  }
  if (loss < kLeast && farthest < kFarMean) return "";
  const auto ranges = candidates(model.graph.input_shape[0]);
  const PixelRange fits = by_statistics(statistics, ranges, shown);
  if (!fits.known()) return "";
  const auto best = fits_of(statistics, ranges, shown)[0].loss;
  if (loss < kFactor * best) return "";
  return format(
      "its pixels are not those that the network was trained with: its "
      "BatchNorm layers saw others (loss %.2f, and %.2f of pixels of %s)",
      loss, best, fits.name.c_str());
}

}  // namespace zsq::pipeline
