// SPDX-License-Identifier: Apache-2.0
// Samples, settings, and the page of one run as a whole.
#include "formats/atomic_file.h"
#include "formats/base64.h"
#include "pipeline/report/curves.h"
#include "pipeline/report/page.h"
#include "pipeline/report/sections.h"
#include "pipeline/results.h"
#include "pipeline/session/format.h"

namespace zsq {
namespace pipeline {
namespace {

using analysis::escaped;

std::string fact(const std::string& name, const std::string& value) {
  if (value.empty()) return "";
  return "<tr><th scope=\"row\">" + escaped(name) + "</th><td>" + escaped(value) + "</td></tr>\n";
}

std::string facts(const Json& r) {
  const Json &setting = member(r, "setting"), &kept = member(r, "kept");
  const double ends = number_in(setting, "first_last_bits").value_or(0);
  std::string floats;
  for (const Json& name : list_in(setting, "float_tensors"))
    if (name.is_string()) floats += (floats.empty() ? "" : ", ") + name.get<std::string>();
  const auto number = [](const Json& json, const char* key) {
    return number_in(json, key).value_or(0);
  };
  std::string best;
  if (kept.is_object())
    best = format(
        "of iteration %.0f: divergence %.4g nats on %.0f held-out synthetic images, "
        "%.4g at the start, %.4g at the end",
        number(kept, "iteration"), number(member(kept, "kept"), "divergence"),
        number(kept, "images"), number(member(kept, "start"), "divergence"),
        number(member(kept, "last"), "divergence"));
  return "<table class=\"facts\">\n" + fact("Model", text_in(r, "model")) +
         fact("Scheme", text_in(r, "scheme") + ", mode " + text_in(r, "mode") + ", target " +
                            text_in(r, "target")) +
         fact("Weights", text_in(setting, "weights")) +
         fact("Activations", text_in(setting, "activations")) +
         fact("First and last layer", ends > 0 ? format("%.0f bits", ends) : "as the rest") +
         fact("Float at inference", floats.empty() ? "nothing" : floats) +
         fact("Recipe, seed", text_in(r, "recipe") + format(", %.0f", number(r, "seed"))) +
         fact("Best checkpoint", best) +
         fact("Skipped steps",
              number(r, "skipped_steps") > 0 ? format("%.0f", number(r, "skipped_steps")) : "") +
         fact("Source SHA-256", text_in(r, "source_sha256")) +
         fact("zsq", text_in(r, "tool_version")) + "</table>\n";
}

// What the run changed of its recipe, then all settings.
std::string changed_and_all(const FinishedRun& run) {
  Grid changed{
      {{"Setting"}, {"This run"}, {"Recipe " + text_in(run.report, "recipe")}, {"Meaning"}}, {}};
  Grid all{{{"Setting"}, {"Value"}, {"Meaning"}}, {}};
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    const SettingHelp& setting = run.settings[i];
    const std::string before =
        run.recipe_settings.empty() ? setting.value : run.recipe_settings[i].value;
    if (setting.value != before)
      changed.rows.push_back({setting.key, setting.value, before, setting.help});
    else
      all.rows.push_back({setting.key, setting.value, setting.help});
  }
  std::string html;
  if (!changed.rows.empty())
    html = to_html(changed,
                   "Settings that differ from the recipe; those of the preprocessing "
                   "follow from --preset or the model's file");
  if (!all.rows.empty())
    html += "<details><summary>" +
            std::string(changed.rows.empty() ? "All settings" : "All other settings") +
            "</summary>\n" + to_html(all, "As the recipe has them") + "</details>\n";
  return html;
}

}  // namespace

std::string settings_section(const FinishedRun& run) {
  return section("Settings", facts(run.report) + changed_and_all(run));
}

std::string samples_section(const FinishedRun& run) {
  std::string html;
  for (const HistoryRecord& record : run.history) {
    const auto file = image_file(run.folder, record);
    if (record.image.empty() || !std::filesystem::is_regular_file(file)) continue;
    const std::string words = "Iteration " + std::to_string(record.step);
    html.append("<figure><img alt=\"Images of the generator, ")
        .append(words)
        .append("\" src=\"data:image/png;base64,")
        .append(formats::base64(formats::read_file(file)))
        .append("\"><figcaption>")
        .append(words)
        .append("</figcaption></figure>\n");
  }
  if (html.empty()) return "";
  return section("Generated images",
                 paragraph("What the generator made at the start, and at the end of each sixth of "
                           "its training.") +
                     "<div class=\"samples\">\n" + html + "</div>\n");
}

std::string run_page(const FinishedRun& run) {
  const std::string model = std::filesystem::path(text_in(run.report, "model")).filename().string();
  return page(model + ": " + text_in(run.report, "scheme"),
              verdict_section(run) + size_section(run) + samples_section(run) +
                  section("Curves", chart_grid(curve_charts({{"", run.history}}))) +
                  stages_section(run) + layers_section(run) + sensitivity_section(run) +
                  bits_section(run) + settings_section(run));
}

}  // namespace pipeline

std::string to_html(const QuantizeReport& report) {
  return pipeline::run_page({.folder = {}, .report = pipeline::Json::parse(to_json(report))});
}

}  // namespace zsq
