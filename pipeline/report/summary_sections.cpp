// SPDX-License-Identifier: Apache-2.0
// Verdict, key figures, size and accuracy, stages.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "analysis/bars.h"
#include "pipeline/report/latency.h"
#include "pipeline/report/output_words.h"
#include "pipeline/report/page.h"
#include "pipeline/report/sections.h"
#include "pipeline/report/verdict.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;
using analysis::escaped;

std::optional<RealResult> measured_in(const Json& report) {
  const auto teacher = number_in(member(report, "teacher"), "top1");
  const auto student = number_in(member(report, "student"), "top1");
  if (!teacher || !student) return std::nullopt;
  const double images = number_in(member(report, "student"), "images").value_or(0);
  return RealResult{{*teacher},
                    {*student, 0, std::llround(images)},
                    number_in(report, "real_agreement").value_or(1)};
}

std::string card(const std::string& name, const std::string& value, const std::string& small) {
  return "<div><dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "<small>" + escaped(small) +
         "</small></dd></div>\n";
}

// Runs of earlier versions say nothing: their outputs were taken as logits.
std::string kind_of(const Json& r) {
  const std::string kind = text_in(r, "output_kind");
  return kind.empty() ? "logits" : kind;
}
std::int64_t outputs_of(const Json& r) { return std::llround(number_in(r, "outputs").value_or(0)); }
OutputWords words_of(const Json& r) { return words_for(kind_of(r), outputs_of(r)); }

std::string sentence_case(std::string words) {
  if (!words.empty())
    words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return words;
}

std::string cards(const Json& r) {
  std::string html;
  if (const auto measured = measured_in(r))
    html += card("Top-1", format("%.2f %%", measured->student.top1),
                 format("float: %.2f %%; %lld images", measured->teacher.top1,
                        static_cast<long long>(measured->student.images)));
  double images = 0;
  for (const Json& kind : list_in(r, "synthetic")) images += number_in(kind, "images").value_or(0);
  const OutputWords words = words_of(r);
  const bool classes = kind_of(r) == "logits";
  if (const auto agreement = number_in(r, "agreement"))
    html += card("Agreement", format("%.1f %%", 100 * *agreement),
                 (classes ? "" : words.agreement + " ") +
                     format("with the float network; %.0f held-out synthetic images", images));
  if (const auto divergence = number_in(r, "divergence"))
    html += card(classes ? "KL divergence" : sentence_case(words.divergence),
                 format("%.4f", *divergence), "from the float network, " + words.unit);
  const Json& size = member(r, "size");
  const double full = number_in(size, "fp32_bytes").value_or(0);
  const double small = number_in(size, "quantized_bytes").value_or(0);
  if (small > 0)
    html +=
        card("Parameters", bytes_in_words(small),
             format("float: %s; %.1f times smaller", bytes_in_words(full).c_str(), full / small));
  const double iterations = number_in(r, "iterations").value_or(0);
  html += card("Time", format("%.1f s", number_in(r, "seconds").value_or(0)),
               iterations > 0 ? format("%.0f iterations", iterations) : "no training");
  return "<dl class=\"cards\">\n" + html + "</dl>\n";
}

}  // namespace

Grid outputs_grid(const Json& report) {
  Grid grid{{{"Output"}, {"Meaning"}, {"Images"}, {"Agreement", true}, {"Divergence", true}}, {}};
  for (const Json& kind : list_in(report, "synthetic"))
    for (const Json& output : list_in(kind, "outputs")) {
      const auto numbers = std::llround(number_in(output, "numbers").value_or(0));
      const OutputWords words = words_for(text_in(output, "kind"), numbers);
      const auto number = [&](const char* key) {
        return format("%.4f", number_in(output, key).value_or(kNotMeasured));
      };
      grid.rows.push_back({text_in(output, "name"),
                           outputs_in_words(text_in(output, "kind"), numbers),
                           images_in_words(text_in(kind, "kind")),
                           number("agreement") + " (" + words.agreement + ")",
                           number("divergence") + " (" + words.divergence + ")"});
    }
  return grid;
}

namespace {

std::string outputs_table(const Json& report) {
  const Grid grid = outputs_grid(report);
  return grid.rows.empty() ? "" : to_html(grid, "Outputs, student and float network");
}

std::string files(const FinishedRun& run) {
  Grid grid{{{"File"}, {"Size, kB", true}}, {}};
  const auto add = [&](const fs::path& file, const std::string& name) {
    std::error_code missing;
    const auto bytes = fs::file_size(file, missing);
    if (!missing) grid.rows.push_back({name, format("%.1f", static_cast<double>(bytes) / 1e3)});
  };
  const fs::path model = text_in(run.report, "model");
  if (!run.folder.empty()) add(model, model.filename().string() + " (float)");
  for (const Json& file : list_in(run.report, "files")) {
    const fs::path name = fs::path(file.is_string() ? file.get<std::string>() : "").filename();
    if (!run.folder.empty() && !name.empty()) add(run.folder / name, name.string());
  }
  return grid.rows.empty() ? "" : to_html(grid, "Files as they lie on disk");
}

std::string float_share_in_words(const Json& report) {
  const double share = number_in(report, "float_share").value_or(0);
  return share > 0 ? format(" %.2g %% of the multiply-accumulates are in float.", 100 * share) : "";
}

std::string execution(const FinishedRun& run) {
  const Json& layers = list_in(run.report, "layers");
  const auto integer = std::count_if(layers.begin(), layers.end(), [](const Json& layer) {
    return text_in(layer, "executes_as").starts_with("int8");
  });
  std::string html;
  if (!layers.empty() && !text_in(layers.front(), "executes_as").empty())
    html = paragraph(format("%lld of %zu layers run in integers on %s.",
                            static_cast<long long>(integer), layers.size(),
                            text_in(run.report, "target").c_str()) +
                     float_share_in_words(run.report));
  if (const Json& saturation = member(run.report, "saturation"); saturation.is_object())
    html += paragraph("The same on every x86 processor: " + text_in(saturation, "words") + ".");
  if (const std::string table = latency_table(run.latency); !table.empty()) return html + table;
  const std::string folder = run.folder.empty() ? "FOLDER" : run.folder.string();
  const std::string model = text_in(run.report, "model");
  const bool runtimes_read_it = model.ends_with(".onnx");
  return html + "<p>A run measures no latency. <code>scripts/bench_runtimes.py " +
         escaped((runtimes_read_it ? model : "FLOAT.onnx") + " " + folder) +
         " --record</code> times both networks in onnxruntime and OpenVINO for the next <code>zsq "
         "report</code>" +
         (runtimes_read_it ? "" : "; <code>FLOAT.onnx</code> is this network as ONNX") + ".</p>\n";
}

}  // namespace

std::string verdict_section(const FinishedRun& run) {
  const auto measured = measured_in(run.report);
  const std::string verdict =
      measured ? verdict_on_real(*measured, kind_of(run.report), outputs_of(run.report))
               : text_in(run.report, "verdict");
  std::string box;
  if (!verdict.empty()) {
    const auto colon = std::min(verdict.find(": "), verdict.size());
    std::string headline = verdict.substr(0, colon), rest = verdict.substr(colon);
    headline = sentence_case(headline);
    if (rest.size() > 2) {
      rest = rest.substr(2) + ".";
      rest[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(rest[0])));
    }
    if (!measured)
      rest += std::string(" Measured on held-out synthetic images; ") +
              (has_labels(kind_of(run.report)) ? "zsq eval" : "zsq compare --data") +
              " measures on real ones.";
    box = verdict_box(mood_of(verdict), headline, rest);
  } else {
    box =
        verdict_box("fair", "Not measured",
                    "The run had no held-out synthetic images (process.agreement_images=0) and no "
                    "real ones (--eval_data).");
  }
  return box + cards(run.report);
}

std::string size_section(const FinishedRun& run) {
  const Json &r = run.report, &size = member(r, "size");
  const double full = number_in(size, "fp32_bytes").value_or(0);
  const double small = number_in(size, "quantized_bytes").value_or(0);
  const std::string whole = text_in(r, "scheme"), scheme = whole.substr(0, whole.find(','));
  std::vector<analysis::Svg> charts{analysis::bar_chart(
      "Parameters",
      {{"FP32", full, bytes_in_words(full), 7}, {scheme, small, bytes_in_words(small), 0}})};
  if (const auto measured = measured_in(r)) {
    const double teacher = measured->teacher.top1, student = measured->student.top1;
    charts.push_back(analysis::bar_chart("Top-1 on real images",
                                         {{"FP32", teacher, format("%.2f %%", teacher), 7},
                                          {scheme, student, format("%.2f %%", student), 0}},
                                         100));
  }
  for (analysis::Svg& chart : latency_charts(run.latency, scheme))
    charts.push_back(std::move(chart));
  const OutputWords words = words_of(r);
  Grid synthetic{{{"Held-out synthetic images"},
                  {"Images", true},
                  {sentence_case(words.agreement) + ", %", true},
                  {sentence_case(words.divergence), true}},
                 {}};
  for (const Json& kind : list_in(r, "synthetic"))
    synthetic.rows.push_back({text_in(kind, "kind"),
                              format("%.0f", number_in(kind, "images").value_or(0)),
                              format("%.1f", 100 * number_in(kind, "agreement").value_or(0)),
                              format("%.4f", number_in(kind, "divergence").value_or(0))});
  return section(
      "Size, latency and accuracy",
      chart_grid(charts) +
          (synthetic.rows.empty() ? ""
                                  : to_html(synthetic,
                                            "Student and teacher on images that nothing learned "
                                            "from; " +
                                                words.divergence + " in " + words.unit)) +
          outputs_table(r) + files(run) + execution(run));
}

std::string stages_section(const FinishedRun& run) {
  Grid grid{{{"Stage"},
             {"Estimate, s", true},
             {"Took, s", true},
             {words_of(run.report).divergence + " on held-out images"},
             {"Outcome"}},
            {}};
  for (const Json& stage : list_in(run.report, "stages")) {
    std::string divergences;
    for (const Json& kind : list_in(stage, "synthetic"))
      divergences += (divergences.empty() ? "" : ", ") +
                     format("%.4f", number_in(kind, "divergence").value_or(0));
    const auto estimate = number_in(stage, "estimate");
    grid.rows.push_back({text_in(stage, "name"), estimate ? format("%.0f", *estimate) : "",
                         format("%.1f", number_in(stage, "seconds").value_or(0)), divergences,
                         text_in(stage, "outcome")});
  }
  return grid.rows.size() < 2 ? ""
                              : section("Stages", to_html(without_empty_columns(grid),
                                                          "In the order in which they ran"));
}

}  // namespace zsq::pipeline
