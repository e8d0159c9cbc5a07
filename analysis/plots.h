// SPDX-License-Identifier: Apache-2.0
// The charts of analyses and reports.
#pragma once
#include <string>
#include <vector>

#include "analysis/svg.h"

namespace zsq::analysis {

struct Axis {
  std::string label;
  bool logarithmic = false;  // values at or below 0 are left out
  // Both 0: from the data.
  double low = 0, high = 0;
};

struct Curve {
  std::string name;
  std::vector<Point> points;
};

struct Chart {
  std::string title;
  Axis x;
  std::vector<Curve> curves;
};

// Charts side by side, the vertical axis of one range; one legend for all.
Svg line_charts(const std::vector<Chart>& charts, const Axis& y);

struct Cloud {
  std::string name;
  std::vector<Point> points;
  bool ring = false;  // open marks
  double radius = 2.1;
};
struct CloudChart {
  std::string title;
  std::vector<Cloud> clouds;  // equal names have one colour in all charts
};
Svg scatter_charts(const std::vector<CloudChart>& charts, const Axis& x, const Axis& y);

struct HeatMap {
  std::string title;
  std::vector<std::vector<double>> values;  // [row][column], first row on top; not finite: empty
};
// Maps side by side with one scale of colours.
Svg heat_maps(const std::vector<HeatMap>& maps, const std::vector<std::string>& rows,
              const std::vector<std::string>& columns, const std::string& column_label,
              const Axis& colour);

}  // namespace zsq::analysis
