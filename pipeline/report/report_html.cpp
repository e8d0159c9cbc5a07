// SPDX-License-Identifier: Apache-2.0
// One page, styles and drawing inside, nothing fetched.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "analysis/svg.h"
#include "pipeline/quantize.h"

namespace zsq {
namespace {

using analysis::escaped;

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char buffer[256];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, values);
  va_end(values);
  return buffer;
}

std::string row(const std::string& name, const std::string& value) {
  return "<tr><th>" + name + "</th><td>" + escaped(value) + "</td></tr>\n";
}

std::string unit_of(const MixedResult& mixed) {
  if (mixed.budget_kind == "size") return "bytes";
  if (mixed.budget_kind == "bops") return "bit operations";
  return "by the cost table";
}

std::string accuracy_text(const std::optional<Accuracy>& a) {
  if (!a) return "not measured (no evaluation data given)";
  return format("top-1 %.2f %%, top-5 %.2f %% on %lld images", a->top1, a->top5,
                static_cast<long long>(a->images));
}

std::string summary(const QuantizeReport& r) {
  std::string floats;
  for (const std::string& name : r.float_tensors) floats += (floats.empty() ? "" : ", ") + name;
  std::string html = "<table>\n";
  html += row("Model", r.model);
  html += row("Scheme", r.scheme + ", mode " + r.mode + ", target " + r.target);
  html += row("Weights", r.weights);
  html += row("Activations", r.activations);
  if (r.mixed)
    html += row("Bits of each layer",
                format("chosen for a budget of %.4g %s, of which %.4g are used; predicted "
                       "divergence %.4g nats",
                       r.mixed->budget, unit_of(*r.mixed).c_str(), r.mixed->used,
                       r.mixed->predicted_divergence));
  if (r.mixed && !r.mixed->cost_table.empty())
    html += row("Cost table", r.mixed->cost_table + ", SHA-256 " + r.mixed->cost_table_sha256);
  html += row("First and last layer",
              r.first_last_bits ? std::to_string(r.first_last_bits) + " bits" : "as the rest");
  html += row("Float at inference", floats.empty() ? "nothing" : floats);
  html += row("Teacher", accuracy_text(r.teacher));
  html += row("Student", accuracy_text(r.student));
  for (const SyntheticResult& s : r.synthetic)
    html += row("Held-out synthetic images: " + s.kind,
                format("the same class on %.1f %% of %lld, KL %.4f nats per image",
                       100 * s.agreement, static_cast<long long>(s.images), s.divergence));
  if (!r.verdict.empty()) html += row("Verdict", r.verdict);
  if (!r.costliest_layer.empty()) html += row("Layer that costs most", r.costliest_layer);
  html += row("Recipe, seed", r.recipe + ", " + std::to_string(r.seed));
  html += row("Iterations", std::to_string(r.iterations) +
                                format(" (%lld skipped), %.1f s",
                                       static_cast<long long>(r.skipped_steps), r.seconds));
  if (r.kept)
    html += row("Kept state",
                format("of iteration %lld: divergence %.4g nats on %lld held-out synthetic images, "
                       "%.4g at the start, %.4g at the end",
                       static_cast<long long>(r.kept->iteration), r.kept->kept.divergence,
                       static_cast<long long>(r.kept->images), r.kept->start.divergence,
                       r.kept->last.divergence));
  html += row("Source SHA-256", r.source_sha256);
  return html + "</table>\n";
}

std::string bar(double y, double width, const char* css, const std::string& label,
                const std::string& value) {
  return format("<text x=\"215\" y=\"%.0f\" text-anchor=\"end\">", y + 12) + escaped(label) +
         format("</text><rect class=\"%s\" x=\"220\" y=\"%.0f\" width=\"%.1f\" height=\"14\"/>",
                css, y, width) +
         format("<text x=\"%.1f\" y=\"%.0f\">", 225 + width, y + 12) + escaped(value) + "</text>\n";
}

std::string svg(double height, const std::string& content) {
  return format("<svg viewBox=\"0 0 760 %.0f\" width=\"760\" height=\"%.0f\">\n", height, height) +
         content + "</svg>\n";
}

std::string sizes(const QuantizeReport& r) {
  const auto full = static_cast<double>(std::max<std::int64_t>(r.fp32_bytes, 1));
  const auto small = static_cast<double>(r.quantized_bytes);
  return svg(44, bar(2, 400, "a", "FP32", format("%.1f kB", full / 1e3)) +
                     bar(22, 400 * small / full, "b", r.scheme,
                         format("%.1f kB (%.1f times smaller)", small / 1e3,
                                small > 0 ? full / small : 0)));
}

std::string crossings(const QuantizeReport& r) {
  if (r.iterations == 0) return "";
  double largest = 1e-12;
  for (const LayerResult& layer : r.layers) largest = std::max(largest, layer.crossings);
  std::string content;
  double y = 2;
  for (const LayerResult& layer : r.layers) {
    std::string label = layer.name;
    if (label.size() > 32) label.replace(0, label.size() - 29, "...");
    content += bar(y, 400 * layer.crossings / largest, "b", label, format("%.2e", layer.crossings));
    y += 18;
  }
  return "<h2>Crossings: share of a layer's codes that a step changes</h2>\n" + svg(y, content);
}

std::string decibels(double value) {
  return std::isnan(value) ? "" : std::isinf(value) ? "exact" : format("%.1f", value);
}

std::string stage_table(const QuantizeReport& r) {
  if (r.stages.size() < 2) return "";
  std::string html =
      "<h2>Stages</h2>\n<table>\n<tr><th>Stage</th><th>Estimate, s</th><th>Took, s</th>"
      "<th>KL on held-out images</th><th>Outcome</th></tr>\n";
  for (const StageResult& stage : r.stages) {
    std::string divergences;
    for (const SyntheticResult& s : stage.synthetic)
      divergences += (divergences.empty() ? "" : ", ") + format("%.4f", s.divergence);
    html += "<tr><td>" + escaped(stage.name) +
            format("</td><td>%.0f</td><td>%.1f", stage.estimate, stage.seconds) + "</td><td>" +
            divergences + "</td><td>" + escaped(stage.outcome) + "</td></tr>\n";
  }
  return html + "</table>\n";
}

std::string layer_table(const QuantizeReport& r) {
  std::string html =
      "<table>\n<tr><th>Layer</th><th>Operator</th><th>Weight bits</th><th>Activation bits</th>"
      "<th>Weight SQNR, dB</th><th>Output SQNR, dB</th><th>Executes as</th><th>Why</th></tr>\n";
  for (const LayerResult& layer : r.layers)
    html += "<tr><td>" + escaped(layer.name) + "</td><td>" + escaped(layer.op) + "</td><td>" +
            std::to_string(layer.weight_bits) + "</td><td>" +
            (layer.activation_bits ? std::to_string(layer.activation_bits) : "float") +
            "</td><td>" + decibels(layer.weight_sqnr) + "</td><td>" + decibels(layer.output_sqnr) +
            "</td><td>" + escaped(layer.executes_as) + "</td><td>" + escaped(layer.reason) +
            "</td></tr>\n";
  return html + "</table>\n";
}

}  // namespace

std::string to_html(const QuantizeReport& report) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>zsq "
         "report</title>\n"
         "<style>body{font:14px sans-serif;max-width:800px;margin:2em auto}table{border-collapse:"
         "collapse}th,td{text-align:left;padding:2px 10px 2px 0;border-bottom:1px solid #ddd}"
         "svg{font:12px sans-serif}.a{fill:#999}.b{fill:#2a6fb0}</style></head><body>\n"
         "<h1>" +
         escaped(report.scheme) + " of " +
         escaped(std::filesystem::path(report.model).filename().string()) + "</h1>\n" +
         summary(report) + stage_table(report) + "<h2>Parameters</h2>\n" + sizes(report) +
         crossings(report) + "<h2>Layers</h2>\n" + layer_table(report) + "</body></html>\n";
}

}  // namespace zsq
