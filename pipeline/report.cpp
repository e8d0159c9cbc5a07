// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "formats/atomic_file.h"
#include "pipeline/report/curves.h"
#include "pipeline/report/latency.h"
#include "pipeline/report/output_words.h"
#include "pipeline/report/page.h"
#include "pipeline/report/sections.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/format.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using namespace pipeline;

// As short as tells them apart.
std::vector<std::string> names_of(const std::vector<FinishedRun>& runs) {
  std::vector<std::string> names;
  for (const FinishedRun& run : runs)
    names.push_back(fs::absolute(run.folder / "").lexically_normal().parent_path().filename());
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size())
    std::transform(runs.begin(), runs.end(), names.begin(),
                   [](const FinishedRun& run) { return run.folder.string(); });
  return names;
}

std::string scaled(const std::optional<double>& value, double by, const char* pattern) {
  return value ? format(pattern, by * *value) : "";
}

double kilobytes(const Json& report) {
  return number_in(member(report, "size"), "quantized_bytes").value_or(0) / 1e3;
}

// Of the run in onnxruntime or what else was measured first.
std::optional<double> latency_of(const FinishedRun& run) {
  const auto latency = first_latency(run.latency);
  return latency ? std::optional(latency->ms) : std::nullopt;
}

// Named after what was measured, if that is the same for all runs that were.
std::string latency_axis(const std::vector<FinishedRun>& runs) {
  std::set<std::string> places;
  for (const FinishedRun& run : runs)
    if (const auto latency = first_latency(run.latency)) places.insert(latency->where);
  return "Latency, ms" + (places.size() == 1 ? " (" + *places.begin() + ")" : "");
}

// What the divergence is called; of networks with different kinds of output no unit is common.
OutputWords words_of(const std::vector<FinishedRun>& runs) {
  std::set<std::pair<std::string, bool>> kinds;
  for (const FinishedRun& run : runs)
    kinds.emplace(text_in(run.report, "output_kind"), number_in(run.report, "outputs") == 1.0);
  if (kinds.size() > 1) return {"agreement", "Divergence", ""};
  OutputWords words = words_for(kinds.begin()->first, kinds.begin()->second ? 1 : 2);
  words.divergence[0] =
      static_cast<char>(std::toupper(static_cast<unsigned char>(words.divergence[0])));
  return words;
}

Grid results_of(const std::vector<FinishedRun>& runs, const std::vector<std::string>& names) {
  Grid grid{{{"Run"},
             {"Model"},
             {"Scheme"},
             {"Recipe"},
             {"Seed", true},
             {"Float top-1, %", true},
             {"Top-1, %", true},
             {"Agreement, %", true},
             {words_of(runs).divergence, true},
             {"Size, kB", true},
             {latency_axis(runs), true},
             {"Time, s", true}},
            {}};
  std::set<std::string> models;
  for (const FinishedRun& run : runs) models.insert(text_in(run.report, "source_sha256"));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json& r = runs[i].report;
    const std::string model = fs::path(text_in(r, "model")).filename();
    grid.rows.push_back({names[i], models.size() > 1 ? model : "", text_in(r, "scheme"),
                         text_in(r, "recipe"), scaled(number_in(r, "seed"), 1, "%.0f"),
                         scaled(number_in(member(r, "teacher"), "top1"), 1, "%.2f"),
                         scaled(number_in(member(r, "student"), "top1"), 1, "%.2f"),
                         scaled(number_in(r, "agreement"), 100, "%.1f"),
                         scaled(number_in(r, "divergence"), 1, "%.4f"),
                         format("%.1f", kilobytes(r)), scaled(latency_of(runs[i]), 1, "%.3f"),
                         scaled(number_in(r, "seconds"), 1, "%.1f")});
  }
  return without_empty_columns(grid);
}

// Each output of networks of several, of all runs that have some.
Grid outputs_side_by_side(const std::vector<FinishedRun>& runs,
                          const std::vector<std::string>& names) {
  Grid all{outputs_grid(Json::object()).columns, {}};
  all.columns.insert(all.columns.begin(), {"Run"});
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (auto& row : outputs_grid(runs[i].report).rows) {
      row.insert(row.begin(), names[i]);
      all.rows.push_back(std::move(row));
    }
  return all;
}

// The settings in which the runs differ.
Grid settings_of(const std::vector<FinishedRun>& runs, const std::vector<std::string>& names) {
  Grid grid{{{"Setting"}}, {}};
  for (const std::string& name : names) grid.columns.push_back({name});
  for (std::size_t s = 0; s < runs.front().settings.size(); ++s) {
    std::vector<std::string> row{runs.front().settings[s].key};
    for (const FinishedRun& run : runs)
      row.push_back(run.settings.empty() ? "" : run.settings[s].value);
    if (std::set<std::string>(row.begin() + 1, row.end()).size() > 1) grid.rows.push_back(row);
  }
  return grid;
}

// Output SQNR of the layers, by name, in the order in which they come.
Grid layers_of(const std::vector<FinishedRun>& runs, const std::vector<std::string>& names) {
  Grid grid{{{"Layer"}}, {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    grid.columns.push_back({names[i], true});
    for (const Json& layer : list_in(runs[i].report, "layers")) {
      const std::string name = text_in(layer, "name");
      auto row = std::find_if(grid.rows.begin(), grid.rows.end(),
                              [&](const auto& known) { return known.front() == name; });
      if (row == grid.rows.end()) {
        grid.rows.emplace_back(runs.size() + 1);
        row = grid.rows.end() - 1;
        row->front() = name;
      }
      (*row)[i + 1] = scaled(number_in(layer, "output_sqnr"), 1, "%.1f");
    }
  }
  return grid;
}

// What a run costs who uses it.
struct Cost {
  std::string name, axis;
  std::optional<double> (*of)(const FinishedRun&);
};

// If all runs have both, the cost and `of`(report).
template <class F>
std::optional<analysis::Svg> against(const Cost& cost, const std::vector<FinishedRun>& runs,
                                     const std::vector<std::string>& names,
                                     const std::string& title, analysis::Axis axis, const F& of) {
  std::vector<analysis::Cloud> clouds;
  double largest = 0, low = std::numeric_limits<double>::infinity(), high = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::optional<double> value = of(runs[i].report), x = cost.of(runs[i]);
    if (!value || !x) return std::nullopt;
    clouds.push_back({names[i], {{*x, *value}}, false, 5});
    largest = std::max(largest, *x);
    low = std::min(low, *value);
    high = std::max(high, *value);
  }
  axis.logarithmic = axis.logarithmic && low > 0;
  // Marks stand off the edges.
  const double margin = 0.1 * (high - low) + 0.5;
  axis.low = axis.logarithmic ? low / 1.5 : low - margin;
  axis.high = axis.logarithmic ? high * 1.5 : high + margin;
  return analysis::scatter_charts({{title + " against " + cost.name, std::move(clouds)}},
                                  {cost.axis, false, 0, 1.1 * largest}, axis);
}

std::optional<double> top1(const Json& r) { return number_in(member(r, "student"), "top1"); }
std::optional<double> divergence(const Json& r) { return number_in(r, "divergence"); }

std::string best_of(const std::vector<FinishedRun>& runs, const std::vector<std::string>& names) {
  const auto has = [&](const auto& of) {
    return std::all_of(runs.begin(), runs.end(), [&](const auto& run) { return of(run.report); });
  };
  const auto best = [&](const auto& less) {
    return static_cast<std::size_t>(std::min_element(runs.begin(), runs.end(), less) -
                                    runs.begin());
  };
  if (has(top1)) {
    const auto first =
        best([](const auto& a, const auto& b) { return *top1(a.report) > *top1(b.report); });
    return verdict_box("good", names[first] + " has the highest top-1",
                       format("%.2f %% on real images.", *top1(runs[first].report)));
  }
  const OutputWords words = words_of(runs);
  if (!has(divergence) || words.unit.empty()) return "";
  const auto first = best(
      [](const auto& a, const auto& b) { return *divergence(a.report) < *divergence(b.report); });
  return verdict_box("good", names[first] + " is nearest to its float network",
                     words.divergence + format(" %.4f ", *divergence(runs[first].report)) +
                         words.unit +
                         ", on held-out synthetic images. Runs that held out other images cannot "
                         "be compared by it; zsq select ranks all on one set.");
}

std::string comparison_page(const std::vector<FinishedRun>& runs,
                            const std::vector<std::string>& names, const Grid& results,
                            const Grid& outputs, const Grid& settings, const Grid& layers) {
  const OutputWords words = words_of(runs);
  const std::string& unit = words.unit;
  std::vector<analysis::Svg> clouds;
  for (const Cost& cost :
       {Cost{"size", "kB of parameters",
             [](const FinishedRun& run) { return std::optional(kilobytes(run.report)); }},
        Cost{"latency", latency_axis(runs), latency_of}})
    for (const auto& chart :
         {against(cost, runs, names, "Top-1", {"%"}, top1),
          against(cost, runs, names, words.divergence, {words.unit, true}, divergence)})
      if (chart) clouds.push_back(*chart);
  std::vector<NamedHistory> histories;
  for (std::size_t i = 0; i < runs.size(); ++i) histories.push_back({names[i], runs[i].history});
  return page(
      std::to_string(runs.size()) + " runs of zsq quantize",
      best_of(runs, names) +
          section("Results",
                  to_html(results, words.divergence + (unit.empty() ? "" : " (" + unit + ")") +
                                       " and agreement on held-out synthetic images; "
                                       "one row per run")) +
          section("Outputs", outputs.rows.empty()
                                 ? ""
                                 : to_html(outputs, "Each output, student and float network")) +
          section("Accuracy against size and latency", chart_grid(clouds)) +
          section("Curves", chart_grid(curve_charts(histories))) +
          section("Layers", to_html(layers,
                                    "Output SQNR in dB if this layer alone is "
                                    "quantized")) +
          section("Settings that differ",
                  settings.rows.empty() ? "" : to_html(settings, "One column per run")));
}

Json as_json(const std::vector<FinishedRun>& runs, const Grid& settings) {
  Json json{{"runs", Json::array()}, {"settings", Json::object()}};
  for (const FinishedRun& run : runs) {
    Json row{{"folder", run.folder.string()}};
    for (const char* key :
         {"model", "source_sha256", "scheme", "recipe", "seed", "output_kind", "teacher", "student",
          "agreement", "divergence", "synthetic", "size", "iterations", "seconds", "verdict"})
      row[key] = member(run.report, key);
    row["latency"] = run.latency;
    row["layers"] = Json::array();
    for (const Json& layer : list_in(run.report, "layers"))
      row["layers"].push_back({{"name", member(layer, "name")},
                               {"weight_sqnr", member(layer, "weight_sqnr")},
                               {"output_sqnr", member(layer, "output_sqnr")}});
    json["runs"].push_back(row);
  }
  for (const auto& row : settings.rows)
    json["settings"][row.front()] = std::vector<std::string>(row.begin() + 1, row.end());
  return json;
}

RunsReport report_inside(const std::vector<fs::path>& folders) {
  if (folders.empty()) throw Error(ErrorCode::usage, "no output folder of `zsq quantize` is given");
  std::vector<FinishedRun> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run(folder));
  const auto names = names_of(runs);
  const Grid results = results_of(runs, names), settings = settings_of(runs, names);
  const Grid outputs = outputs_side_by_side(runs, names);
  const Json json = as_json(runs, settings);
  std::string text = to_text(results);
  if (!outputs.rows.empty()) text += "\nOutputs\n" + to_text(outputs);
  if (runs.size() == 1) return {run_page(runs.front()), text, dump(json)};
  const Grid layers = layers_of(runs, names);
  if (!settings.rows.empty()) text += "\nSettings that differ\n" + to_text(settings);
  text += "\nOutput SQNR in dB, each layer alone quantized\n" + to_text(layers);
  return {comparison_page(runs, names, results, outputs, settings, layers), text, dump(json)};
}

}  // namespace

RunsReport report_runs(const std::vector<fs::path>& folders, const fs::path& output) {
  return at_boundary([&] {
    RunsReport report = report_inside(folders);
    if (!output.empty()) formats::write_atomically(output, std::string_view(report.html));
    return report;
  });
}

}  // namespace zsq
