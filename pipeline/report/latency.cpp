// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/latency.h"

#include <set>

#include "analysis/bars.h"
#include "pipeline/report/page.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

std::string where(const Json& row) {
  const double batch = number_in(row, "batch").value_or(0);
  return text_in(row, "runtime") + (batch == 1 ? ", one image" : format(", %.0f images", batch));
}

double milliseconds(const Json& row, const char* key) { return number_in(row, key).value_or(0); }

}  // namespace

std::vector<analysis::Svg> latency_charts(const Json& latency, const std::string& scheme) {
  std::vector<analysis::Svg> charts;
  std::set<std::string> drawn;
  for (const Json& row : list_in(latency, "rows")) {
    if (!drawn.insert(text_in(row, "runtime")).second) continue;
    const double full = milliseconds(row, "float_ms"), ms = milliseconds(row, "ms");
    charts.push_back(analysis::bar_chart(
        "Latency, " + where(row),
        {{"FP32", full, format("%.3f ms", full), 7}, {scheme, ms, format("%.3f ms", ms), 0}}));
  }
  return charts;
}

std::string latency_table(const Json& latency) {
  Grid grid{{{"Runtime"},
             {"Images at once", true},
             {"FP32, ms", true},
             {"Quantized, ms", true},
             {"Times as fast", true}},
            {}};
  for (const Json& row : list_in(latency, "rows")) {
    const double full = milliseconds(row, "float_ms"), ms = milliseconds(row, "ms");
    grid.rows.push_back({text_in(row, "runtime"), format("%.0f", milliseconds(row, "batch")),
                         format("%.3f", full), format("%.3f", ms),
                         ms > 0 ? format("%.2f", full / ms) : ""});
  }
  if (grid.rows.empty()) return "";
  const double threads = number_in(latency, "threads").value_or(1);
  return to_html(grid,
                 format("Milliseconds of an image, the minimum of rounds in turns; %s, %.0f "
                        "thread%s",
                        text_in(latency, "machine").c_str(), threads, threads == 1 ? "" : "s"));
}

std::optional<Latency> first_latency(const Json& latency) {
  const Json& rows = list_in(latency, "rows");
  if (rows.empty()) return std::nullopt;
  return Latency{where(rows.front()), milliseconds(rows.front(), "ms")};
}

}  // namespace zsq::pipeline
