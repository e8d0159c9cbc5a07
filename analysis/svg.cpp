// SPDX-License-Identifier: Apache-2.0
#include "analysis/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace zsq::analysis {
namespace {

// Light and dark; ten hues and the ink, that stay apart for readers who see few colours in the
// first four.
constexpr std::array<std::pair<const char*, const char*>, kSeries> kColours{
    {{"#0969da", "#58a6ff"},
     {"#bc4c00", "#f0883e"},
     {"#1a7f37", "#3fb950"},
     {"#8250df", "#bc8cff"},
     {"#9a6700", "#d29922"},
     {"#bf3989", "#f778ba"},
     {"#0e7c86", "#39c5cf"},
     {"#57606a", "#8b949e"},
     {"#cf222e", "#ff7b72"},
     {"#4d6b00", "#a5c23a"},
     {"#1f2328", "#f0f6fc"}}};

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string place(const char* x, const char* y, Point at) {
  return std::string(" ") + x + "=\"" + number(at.first) + "\" " + y + "=\"" + number(at.second) +
         "\"";
}

}  // namespace

std::string svg_style() {
  std::string light =
      ".page{fill:#ffffff}.panel{fill:#f6f8fa;stroke:#d1d9e0}.ink{fill:#1f2328;stroke:#1f2328}"
      ".faint{fill:#59636e;stroke:#59636e}.grid{stroke:#d1d9e0}";
  std::string dark =
      ".page{fill:#0d1117}.panel{fill:#151b23;stroke:#3d444d}.ink{fill:#f0f6fc;stroke:#f0f6fc}"
      ".faint{fill:#9198a1;stroke:#9198a1}.grid{stroke:#3d444d}";
  for (std::size_t i = 0; i < kColours.size(); ++i) {
    const auto rule = [&](const char* colour) {
      return "." + series(i) + "{fill:" + colour + ";stroke:" + colour + "}";
    };
    light += rule(kColours[i].first);
    dark += rule(kColours[i].second);
  }
  return "<style>text{stroke:none}.open{fill:none}" + light + "@media(prefers-color-scheme:dark){" +
         dark +
         "}text{stroke:none!important}"
         ".open{fill:none!important}</style>\n";
}

std::string series(std::size_t i) { return "s" + std::to_string(i % kSeries); }

std::string ramp(double share) {
  constexpr std::array<std::array<double, 3>, 5> kStops{
      {{46, 34, 94}, {38, 90, 140}, {29, 145, 140}, {94, 201, 98}, {253, 231, 77}}};
  const double at = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0) * (kStops.size() - 1);
  const auto low = std::min<std::size_t>(static_cast<std::size_t>(at), kStops.size() - 2);
  std::array<char, 8> text{};
  std::array<int, 3> rgb{};
  for (std::size_t c = 0; c < 3; ++c)
    rgb[c] = static_cast<int>(std::lround(
        kStops[low][c] + (at - static_cast<double>(low)) * (kStops[low + 1][c] - kStops[low][c])));
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255,
                rgb[2] & 255);
  return text.data();
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  const double size = std::abs(value);
  const char* pattern = size != 0 && (size < 1e-3 || size >= 1e5) ? "%.2g" : "%.3g";
  std::snprintf(text.data(), text.size(), size >= 1000 && size < 1e5 ? "%.0f" : pattern, value);
  std::string words = text.data();
  for (const char* zeros : {"e+0", "e-0"})  // 1e6, 1e-5
    if (const auto at = words.find(zeros); at != std::string::npos)
      words.replace(at, 3, zeros[1] == '+' ? "e" : "e-");
  return words;
}

std::string full_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

Svg::Svg(double width, double height, const std::string& title) {
  const std::string w = number(width), h = number(height);
  attributes_ = " viewBox=\"0 0 " + w + " " + h + "\" width=\"" + w + "\" height=\"" + h +
                "\" font-family=\"system-ui, sans-serif\" role=\"img\">\n";
  title_ = "<title>" + escaped(title) + "</title>\n";
  body_ = "<rect class=\"page\" width=\"" + w + "\" height=\"" + h + "\"/>\n";
}

void Svg::line(Point from, Point to, const std::string& cls, double width) {
  body_ += "<line class=\"" + cls + "\"" + place("x1", "y1", from) + place("x2", "y2", to) +
           " stroke-width=\"" + number(width) + "\"/>\n";
}

void Svg::polyline(const std::vector<Point>& points, const std::string& cls, double width) {
  body_ += "<polyline class=\"" + cls + " open\" stroke-width=\"" + number(width) +
           "\" stroke-linejoin=\"round\" points=\"";
  for (const Point& point : points) body_ += number(point.first) + "," + number(point.second) + " ";
  body_ += "\"/>\n";
}

void Svg::circle(Point centre, double radius, const std::string& cls, double opacity) {
  body_ += "<circle class=\"" + cls + "\" stroke=\"none\"" + place("cx", "cy", centre) + " r=\"" +
           number(radius) + "\" style=\"stroke:none\" fill-opacity=\"" + number(opacity) + "\"/>\n";
}

void Svg::ring(Point centre, double radius, const std::string& cls) {
  body_ += "<circle class=\"" + cls + " open\"" + place("cx", "cy", centre) + " r=\"" +
           number(radius) + "\"/>\n";
}

void Svg::rect(Point corner, double width, double height, const std::string& cls) {
  body_ += "<rect class=\"" + cls + "\"" + place("x", "y", corner) + " width=\"" + number(width) +
           "\" height=\"" + number(height) + "\"/>\n";
}

void Svg::cell(Point corner, double width, double height, const std::string& colour) {
  body_ += "<rect fill=\"" + colour + "\"" + place("x", "y", corner) + " width=\"" + number(width) +
           "\" height=\"" + number(height) + "\"/>\n";
}

void Svg::text(Point at, const std::string& words, const std::string& cls, double size,
               const std::string& anchor, double degrees) {
  body_ += "<text class=\"" + cls + "\"" + place("x", "y", at) + " font-size=\"" + number(size) +
           "\" text-anchor=\"" + anchor + "\"";
  if (degrees != 0)
    body_ += " transform=\"rotate(" + number(degrees) + " " + number(at.first) + " " +
             number(at.second) + ")\"";
  body_ += ">" + escaped(words) + "</text>\n";
}

std::string Svg::str() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attributes_ + title_ + svg_style() + body_ +
         "</svg>\n";
}

std::string Svg::element() const { return "<svg" + attributes_ + title_ + body_ + "</svg>\n"; }

}  // namespace zsq::analysis
