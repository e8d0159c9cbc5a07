// SPDX-License-Identifier: Apache-2.0
// Layers one by one: table, sensitivity, bits.
#include <set>

#include "analysis/bars.h"
#include "analysis/plots.h"
#include "pipeline/report/page.h"
#include "pipeline/report/sections.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

std::string decibels(const Json& layer, const char* key) {
  const auto value = number_in(layer, key);
  return value ? format("%.1f", *value) : "";
}

std::string range(const Json& layer, const char* key) {
  const Json& ends = list_in(layer, key);
  if (ends.size() != 2 || !ends[0].is_number() || !ends[1].is_number()) return "";
  return analysis::short_number(ends[0].get<double>()) + " to " +
         analysis::short_number(ends[1].get<double>());
}

std::string bits(const Json& layer, const char* key) {
  const double count = number_in(layer, key).value_or(0);
  return count > 0 ? format("%.0f", count) : "float";
}

// The same for all layers, but for the first and the last one.
bool bits_were_chosen(const Json& report) {
  return member(report, "mixed").is_object() || text_in(report, "scheme").starts_with("mixed");
}

analysis::Svg bits_chart(const Json& layers, const char* title, const char* key) {
  std::vector<analysis::Bar> bars;
  for (const Json& layer : layers)
    bars.push_back({text_in(layer, "name"), number_in(layer, key).value_or(0), bits(layer, key)});
  return analysis::bar_chart(title, bars, 8);
}

std::string amount(const Json& mixed, const char* key) {
  const double value = number_in(mixed, key).value_or(0);
  const std::string kind = text_in(mixed, "budget_kind");
  if (kind == "size") return bytes_in_words(value);
  return format("%.4g ", value) + (kind == "bops" ? "bit operations" : "by the cost table");
}

// A map of KL by layer and bits, for weights and, if they were measured, inputs.
std::string sensitivity_maps(const Json& measured) {
  std::set<std::int64_t> widths;
  std::vector<std::string> layers, columns;
  for (const Json& layer : measured) {
    layers.push_back(text_in(layer, "layer"));
    for (const char* of : {"weights", "input"})
      for (std::int64_t width = 1; width <= 32; ++width)
        if (number_in(member(layer, of), std::to_string(width))) widths.insert(width);
  }
  for (const auto width : widths) columns.push_back(std::to_string(width));
  std::vector<analysis::HeatMap> maps;
  for (const auto& [of, title] : {std::pair{"weights", "Weights"}, {"input", "Inputs"}}) {
    analysis::HeatMap map{title, {}};
    bool any = false;
    for (const Json& layer : measured) {
      map.values.emplace_back();
      for (const std::string& column : columns) {
        map.values.back().push_back(number_in(member(layer, of), column).value_or(0));
        any = any || map.values.back().back() > 0;
      }
    }
    if (any) maps.push_back(std::move(map));
  }
  if (maps.empty()) return "";
  return paragraph(
             "KL to the float network if the weights or the input of one layer alone have "
             "these bits; bits were chosen by it.") +
         wide_chart(analysis::heat_maps(maps, layers, columns, "bits", {"nats per image", true}));
}

}  // namespace

std::string layers_section(const FinishedRun& run) {
  const bool trained = number_in(run.report, "iterations").value_or(0) > 0;
  Grid grid{{{"Layer"},
             {"Operator"},
             {"Weight bits", true},
             {"Input bits", true},
             {"Weight range", true},
             {"Input range", true},
             {"Weight SQNR, dB", true},
             {"Output SQNR, dB", true},
             {"Crossings per step", true},
             {"Executes as"},
             {"Why"}},
            {}};
  for (const Json& layer : list_in(run.report, "layers")) {
    const auto crossings = number_in(layer, "crossings");
    const std::string runs_as = text_in(layer, "executes_as");
    grid.rows.push_back({text_in(layer, "name"), text_in(layer, "op"), bits(layer, "weight_bits"),
                         bits(layer, "activation_bits"), range(layer, "weight_range"),
                         range(layer, "input_range"), decibels(layer, "weight_sqnr"),
                         decibels(layer, "output_sqnr"),
                         trained && crossings ? format("%.2e", *crossings) : "", runs_as,
                         runs_as == "int8" ? "" : text_in(layer, "reason")});
  }
  if (grid.rows.empty()) return "";
  return section(
      "Layers",
      to_html(without_empty_columns(grid),
              "SQNR: signal-to-quantization-noise ratio of the weights, and of the output "
              "if this layer alone is quantized" +
                  std::string(trained ? "; crossings: share of the codes that a training "
                                        "step changes"
                                      : "")));
}

std::string sensitivity_section(const FinishedRun& run) {
  const std::string costliest = text_in(run.report, "costliest_layer");
  std::vector<analysis::Bar> bars;
  for (const Json& layer : list_in(run.report, "layers"))
    if (const auto sqnr = number_in(layer, "output_sqnr"))
      bars.push_back({text_in(layer, "name"), *sqnr, format("%.1f dB", *sqnr),
                      text_in(layer, "name") == costliest ? std::size_t{1} : std::size_t{0}});
  std::string html;
  if (!bars.empty())
    html = paragraph("A short bar is a layer that costs much; " + costliest + " costs most.") +
           chart_grid({analysis::bar_chart("Output SQNR, this layer alone quantized", bars)});
  return section("Sensitivity",
                 html + sensitivity_maps(list_in(member(run.report, "mixed"), "sensitivity")));
}

std::string bits_section(const FinishedRun& run) {
  if (!bits_were_chosen(run.report)) return "";
  const Json& mixed = member(run.report, "mixed");
  std::string html;
  if (mixed.is_object())
    html = paragraph(
        "Bits of each layer were chosen for a budget of " + amount(mixed, "budget") +
        ", of which " + amount(mixed, "used") + " are used; predicted divergence " +
        format("%.4g nats per image.", number_in(mixed, "predicted_divergence").value_or(0)));
  if (const std::string table = text_in(mixed, "cost_table"); !table.empty())
    html += paragraph("Cost table: " + table + ", SHA-256 " + text_in(mixed, "cost_table_sha256"));
  const Json& layers = list_in(run.report, "layers");
  return section("Bit allocation",
                 html + chart_grid({bits_chart(layers, "Weight bits", "weight_bits"),
                                    bits_chart(layers, "Input bits", "activation_bits")}));
}

}  // namespace zsq::pipeline
