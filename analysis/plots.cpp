// SPDX-License-Identifier: Apache-2.0
#include "analysis/plots.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zsq::analysis {
namespace {

constexpr double kWidth = 330, kHeight = 250;  // of one panel
constexpr double kLeft = 66, kTop = 40, kBottom = 52, kGap = 40, kRight = 18;
constexpr double kLegendRow = 20;

// From values to pixels, and where the marks of an axis stand.
class Scale {
 public:
  Scale(const Axis& axis, const std::vector<double>& values, double begin, double end)
      : log_(axis.logarithmic), begin_(begin), end_(end), low_(axis.low), high_(axis.high) {
    if (low_ == 0 && high_ == 0) {
      low_ = std::numeric_limits<double>::infinity();
      high_ = -low_;
      for (const double value : values) {
        if (!shows(value)) continue;
        low_ = std::min(low_, value);
        high_ = std::max(high_, value);
      }
      if (low_ > high_) low_ = log_ ? 0.1 : 0, high_ = 1;
      widen();
    }
  }

  bool shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  double at(double value) const {
    return begin_ +
           (end_ - begin_) * (linear(value) - linear(low_)) / (linear(high_) - linear(low_));
  }
  double share(double value) const { return (at(value) - begin_) / (end_ - begin_); }
  double low() const { return low_; }
  double high() const { return high_; }

  std::vector<double> marks() const { return log_ ? decades() : round_steps(); }

 private:
  double linear(double value) const { return log_ ? std::log10(value) : value; }
  // Values that differ by rounding only have one mark; between them there is no step to go.
  void widen() {
    const double largest = std::max(std::abs(low_), std::abs(high_));
    if (high_ - low_ <= 1e-9 * largest) {
      const double room = largest > 0 ? largest / 2 : 0.5;
      low_ = log_ ? low_ / 2 : low_ - room;
      high_ = log_ ? high_ * 2 : high_ + room;
    } else if (!log_) {
      const double margin = 0.04 * (high_ - low_);
      low_ -= margin, high_ += margin;
    }
  }
  std::vector<double> decades() const {
    const int first = static_cast<int>(std::ceil(std::log10(low_) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(high_) + 1e-9));
    const int every = std::max(1, (last - first + 5) / 6);
    std::vector<double> marks;
    for (int power = first; power <= last; power += every) marks.push_back(std::pow(10, power));
    if (marks.empty()) marks = {low_, high_};
    return marks;
  }
  std::vector<double> round_steps() const {
    const double rough = (high_ - low_) / 5, unit = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * unit;
    for (const double factor : {5.0, 2.0, 1.0})
      if (factor * unit >= rough) step = factor * unit;
    std::vector<double> marks;
    for (double value = std::ceil(low_ / step) * step; value <= high_ + 1e-9 * step; value += step)
      marks.push_back(std::abs(value) < 1e-9 * step ? 0 : value);
    return marks;
  }

  bool log_;
  double begin_, end_, low_, high_;
};

double panel_left(std::size_t panel) {
  return kLeft + static_cast<double>(panel) * (kWidth + kGap);
}

double page_width(std::size_t panels) { return panel_left(panels) - kGap + kRight; }

void draw_axes(Svg& svg, std::size_t panel, const std::string& title, const Scale& x,
               const Scale& y, const Axis& x_axis, const Axis& y_axis) {
  const double left = panel_left(panel), bottom = kTop + kHeight;
  svg.rect({left, kTop}, kWidth, kHeight, "panel");
  svg.text({left, kTop - 12}, title, "ink", 14);
  for (const double mark : x.marks()) {
    const double at = left + x.at(mark);
    svg.line({at, kTop}, {at, bottom}, "grid", 0.6);
    svg.text({at, bottom + 17}, short_number(mark), "faint", 11, "middle");
  }
  for (const double mark : y.marks()) {
    svg.line({left, y.at(mark)}, {left + kWidth, y.at(mark)}, "grid", 0.6);
    if (panel == 0) svg.text({left - 7, y.at(mark) + 4}, short_number(mark), "faint", 11, "end");
  }
  svg.text({left + kWidth / 2, bottom + 37}, x_axis.label, "faint", 12, "middle");
  if (panel == 0) svg.text({16, kTop + kHeight / 2}, y_axis.label, "faint", 12, "middle", -90);
}

// Names in rows below the panels, as many in a row as there is room for.
class Legend {
 public:
  explicit Legend(double width) : width_(width) {}

  std::size_t colour_of(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) names_.push_back(name);
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }
  double height() const { return names_.size() < 2 ? 0 : kLegendRow * static_cast<double>(rows()); }
  void draw(Svg& svg, double top) const {
    if (names_.size() < 2) return;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const double x = kLeft + column_width() * static_cast<double>(i % columns());
      const std::size_t row = i / columns();
      const double y = top + kLegendRow * (static_cast<double>(row) + 0.5);
      svg.circle({x + 5, y}, 5, series(i));
      svg.text({x + 16, y + 4}, names_[i]);
    }
  }

 private:
  double column_width() const {
    std::size_t longest = 0;
    for (const std::string& name : names_) longest = std::max(longest, name.size());
    return 34 + 6.8 * static_cast<double>(longest);
  }
  std::size_t columns() const {
    return std::max<std::size_t>(1, static_cast<std::size_t>((width_ - kLeft) / column_width()));
  }
  std::size_t rows() const { return (names_.size() + columns() - 1) / columns(); }

  double width_;
  std::vector<std::string> names_;
};

using Values = std::pair<std::vector<double>, std::vector<double>>;  // x, y

template <class Lists>
void add_values(const Lists& lists, Values& values) {
  for (const auto& list : lists)
    for (const auto& [x, y] : list.points) values.first.push_back(x), values.second.push_back(y);
}

}  // namespace

Svg line_charts(const std::vector<Chart>& charts, const Axis& y_axis) {
  Values all;
  for (const Chart& chart : charts) add_values(chart.curves, all);
  const Scale y(y_axis, all.second, kTop + kHeight, kTop);
  const double width = page_width(charts.size());
  Legend legend(width);
  for (const Chart& chart : charts)
    for (const Curve& curve : chart.curves) legend.colour_of(curve.name);
  Svg svg(width, kTop + kHeight + kBottom + legend.height(),
          charts.size() == 1 ? charts[0].title : y_axis.label);
  for (std::size_t panel = 0; panel < charts.size(); ++panel) {
    Values own;
    add_values(charts[panel].curves, own);
    const Scale x(charts[panel].x, own.first, 0, kWidth);
    draw_axes(svg, panel, charts[panel].title, x, y, charts[panel].x, y_axis);
    for (const Curve& curve : charts[panel].curves) {
      std::vector<Point> line;
      for (const auto& [px, py] : curve.points)
        if (x.shows(px) && y.shows(py)) line.emplace_back(panel_left(panel) + x.at(px), y.at(py));
      svg.polyline(line, series(legend.colour_of(curve.name)));
    }
  }
  legend.draw(svg, kTop + kHeight + kBottom - 8);
  return svg;
}

Svg scatter_charts(const std::vector<CloudChart>& charts, const Axis& x_axis, const Axis& y_axis) {
  Values all;
  for (const CloudChart& chart : charts) add_values(chart.clouds, all);
  const Scale x(x_axis, all.first, 0, kWidth), y(y_axis, all.second, kTop + kHeight, kTop);
  const double width = page_width(charts.size());
  Legend legend(width);
  for (const CloudChart& chart : charts)
    for (const Cloud& cloud : chart.clouds) legend.colour_of(cloud.name);
  Svg svg(width, kTop + kHeight + kBottom + legend.height(), charts.front().title);
  for (std::size_t panel = 0; panel < charts.size(); ++panel) {
    draw_axes(svg, panel, charts[panel].title, x, y, x_axis, y_axis);
    for (const Cloud& cloud : charts[panel].clouds)
      for (const auto& [px, py] : cloud.points) {
        const Point at{panel_left(panel) + x.at(px), y.at(py)};
        const std::string cls = series(legend.colour_of(cloud.name));
        cloud.ring ? svg.ring(at, 2.6, cls) : svg.circle(at, cloud.radius, cls, 0.75);
      }
  }
  legend.draw(svg, kTop + kHeight + kBottom - 8);
  return svg;
}

Svg heat_maps(const std::vector<HeatMap>& maps, const std::vector<std::string>& rows,
              const std::vector<std::string>& columns, const std::string& column_label,
              const Axis& colour) {
  std::vector<double> values;
  for (const HeatMap& map : maps)
    for (const auto& row : map.values) values.insert(values.end(), row.begin(), row.end());
  const Scale scale(colour, values, 0, 1);
  std::size_t longest = 0;
  for (const std::string& row : rows) longest = std::max(longest, row.size());
  const double left = 20 + 6.3 * static_cast<double>(longest);
  const double cell_height = std::clamp(kHeight / static_cast<double>(rows.size()), 13.0, 28.0);
  const double height = cell_height * static_cast<double>(rows.size());
  const double cell_width = kWidth / static_cast<double>(columns.size());
  const auto count = static_cast<double>(maps.size());
  const double width = left + count * (kWidth + kGap) + 70;
  Svg svg(width, kTop + height + kBottom, colour.label);
  for (std::size_t r = 0; r < rows.size(); ++r)
    svg.text({left - 6, kTop + cell_height * (static_cast<double>(r) + 0.5) + 4}, rows[r], "faint",
             11, "end");
  for (std::size_t m = 0; m < maps.size(); ++m) {
    const double from = left + static_cast<double>(m) * (kWidth + kGap);
    svg.text({from, kTop - 12}, maps[m].title, "ink", 14);
    svg.rect({from, kTop}, kWidth, height, "panel");
    for (std::size_t r = 0; r < maps[m].values.size(); ++r)
      for (std::size_t c = 0; c < maps[m].values[r].size(); ++c)
        if (scale.shows(maps[m].values[r][c]))
          svg.cell({from + cell_width * static_cast<double>(c),
                    kTop + cell_height * static_cast<double>(r)},
                   cell_width + 0.3, cell_height + 0.3, ramp(scale.share(maps[m].values[r][c])));
    const std::size_t every = std::max<std::size_t>(1, (columns.size() + 7) / 8);
    for (std::size_t c = 0; c < columns.size(); c += every)
      svg.text({from + cell_width * (static_cast<double>(c) + 0.5), kTop + height + 16}, columns[c],
               "faint", 11, "middle");
    svg.text({from + kWidth / 2, kTop + height + 36}, column_label, "faint", 12, "middle");
  }
  const double bar = left + count * (kWidth + kGap);
  constexpr int kSteps = 48;
  for (int i = 0; i < kSteps; ++i)
    svg.cell({bar, kTop + height * (kSteps - 1 - i) / kSteps}, 12, height / kSteps + 0.3,
             ramp((i + 0.5) / kSteps));
  for (const double mark : scale.marks())
    svg.text({bar + 17, kTop + height * (1 - scale.share(mark)) + 4}, short_number(mark), "faint",
             11);
  svg.text({width - 6, kTop - 12}, colour.label, "faint", 12, "end");
  return svg;
}

}  // namespace zsq::analysis
