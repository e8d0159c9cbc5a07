// SPDX-License-Identifier: Apache-2.0
// A small writer of SVG: shapes in colours of a light and of a dark page. A viewer chooses by
// prefers-color-scheme; nothing is loaded from elsewhere.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace zsq::analysis {

using Point = std::pair<double, double>;

// Colours by role. series(i) repeats after kSeries.
inline constexpr int kSeries = 11;
std::string series(std::size_t i);  // class of a line or a mark
// A sequential colour for 0..1 that can be read on both pages, from dark blue to yellow.
std::string ramp(double share);

class Svg {
 public:
  Svg(double width, double height, const std::string& title);

  // `cls`: "ink", "faint", "grid", "panel", or series(i).
  void line(Point from, Point to, const std::string& cls, double width = 1);
  void polyline(const std::vector<Point>& points, const std::string& cls, double width = 1.6);
  void circle(Point centre, double radius, const std::string& cls, double opacity = 1);
  void ring(Point centre, double radius, const std::string& cls);
  void rect(Point corner, double width, double height, const std::string& cls);
  void cell(Point corner, double width, double height, const std::string& colour);
  // anchor: "start", "middle", "end"
  void text(Point at, const std::string& words, const std::string& cls = "faint", double size = 12,
            const std::string& anchor = "start", double degrees = 0);

  std::string str() const;  // a file
  // An element of a page that holds svg_style() once.
  std::string element() const;

 private:
  std::string attributes_, title_, body_;
};

std::string svg_style();  // <style> with the classes' colours

std::string escaped(const std::string& text);  // for XML and HTML
std::string short_number(double value);        // three digits: 0.0012, 3.1e-5, 1200
std::string full_number(double value);         // ten digits, for tables

}  // namespace zsq::analysis
