// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/curves.h"

#include <algorithm>
#include <limits>

namespace zsq::pipeline {
namespace {

using analysis::Point;

// In the order of the page.
struct CurveKind {
  const char *phase, *second_phase, *metric, *title, *unit;
};
constexpr CurveKind kCurveKinds[] = {
    {"validation", "", "kl", "KL on held-out images", "nats per image"},
    {"validation", "", "agreement", "Agreement on held-out images", "share of images"},
    {"fine-tune", "", "loss_student", "Loss of the student", "loss"},
    {"warm-up", "fine-tune", "bn_statistics", "BNS loss of the generator", "loss, unweighted"},
    {"warm-up", "fine-tune", "loss_generator", "Loss of the generator", "loss"},
    {"fine-tune", "", "agreement", "Agreement on training images", "share of images"},
    {"warm-up", "fine-tune", "rate_factor", "Factor of the learning rates", "factor"},
    {"reconstruct", "", "loss", "Block reconstruction, block by block", "loss"},
    {"images", "", "bn_statistics", "BNS loss of the optimised images", "loss"},
    {"images", "", "cross_entropy", "Cross-entropy of the optimised images", "nats"},
    {"generator", "", "loss_generator", "Loss of the images' generator", "loss"},
};

std::vector<Point> points_of(const std::vector<HistoryRecord>& records, const CurveKind& kind) {
  std::vector<Point> points;
  for (const HistoryRecord& record : records)
    if (record.phase == kind.phase || record.phase == kind.second_phase)
      for (const auto& [name, value] : record.metrics)
        if (name == kind.metric) points.emplace_back(static_cast<double>(record.step), value);
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.first < b.first; });
  return points;
}

std::vector<Point> averaged(const std::vector<Point>& points) {
  constexpr std::size_t kPoints = 120;
  if (points.size() <= kPoints) return points;
  std::vector<Point> means;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const std::size_t begin = i * points.size() / kPoints, end = (i + 1) * points.size() / kPoints;
    Point sum{0, 0};
    for (std::size_t p = begin; p < end; ++p)
      sum = {sum.first + points[p].first, sum.second + points[p].second};
    const auto count = static_cast<double>(end - begin);
    means.emplace_back(sum.first / count, sum.second / count);
  }
  return means;
}

// A loss that falls to a fraction of what it was.
bool spans_decades(const std::vector<analysis::Curve>& curves) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const auto& curve : curves)
    for (const Point& point : curve.points) {
      low = std::min(low, point.second);
      high = std::max(high, point.second);
    }
  return low > 0 && high > 20 * low;
}

bool says_something(const std::vector<analysis::Curve>& curves) {
  return std::any_of(curves.begin(), curves.end(), [](const auto& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(), [&](const Point& point) {
      return point.second != curve.points.front().second;
    });
  });
}

}  // namespace

std::vector<analysis::Svg> curve_charts(const std::vector<NamedHistory>& runs) {
  std::vector<analysis::Svg> charts;
  for (const CurveKind& kind : kCurveKinds) {
    std::vector<analysis::Curve> curves;
    for (const NamedHistory& run : runs)  // an empty one as well: colours are those of the runs
      curves.push_back({run.name, averaged(points_of(run.records, kind))});
    if (!says_something(curves)) continue;
    const bool logarithmic = spans_decades(curves);
    charts.push_back(analysis::line_charts({{kind.title, {"step"}, std::move(curves)}},
                                           {kind.unit, logarithmic}));
  }
  return charts;
}

}  // namespace zsq::pipeline
