// SPDX-License-Identifier: Apache-2.0
#include "pipeline/quantize.h"

#include <cstdio>
#include <iostream>
#include <map>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "launch/ranks.h"
#include "pipeline/report/output_words.h"
#include "pipeline/session/process_memory.h"

namespace zsq::cli {
namespace {

void print_accuracy(const char* who, const std::optional<Accuracy>& a) {
  if (a)
    std::printf("%-10s top-1 %.2f %%  top-5 %.2f %%  (%lld images)\n", who, a->top1, a->top5,
                static_cast<long long>(a->images));
}

void print_boxes(const char* who, const std::optional<eval::BoxMeasures>& boxes) {
  if (boxes)
    std::printf("%-10s AP %.2f %%  AP50 %.2f %%  (%lld boxes)\n", who, boxes->ap, boxes->ap50,
                static_cast<long long>(boxes->boxes));
}

void print_pixels(const char* who, const std::optional<PixelMeasures>& pixels) {
  if (pixels)
    std::printf("%-10s pixel accuracy %.2f %%  mean IoU %.2f %%  (%lld images)\n", who,
                pixels->pixel_accuracy, pixels->mean_iou, static_cast<long long>(pixels->images));
}

// Layers by their bits, as W4A8: the number of layers that have them.
void print_bits(const QuantizeReport& r) {
  std::map<std::string, int> counts;
  for (const LayerResult& layer : r.layers)
    ++counts[Scheme{layer.weight_bits, layer.activation_bits}.name()];
  std::string text;
  for (const auto& [bits, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + bits;
  std::printf("%-10s %s\n", "layers", text.c_str());
}

// What each stage gained; a run of one stage needs no table.
void print_stages(const QuantizeReport& r) {
  if (r.stages.size() < 2) return;
  const std::string measure =
      pipeline::words_for(r.output_kind, r.outputs).divergence + " of both kinds";
  std::printf("%-34s %11s %9s  %-24s %s\n", "stage", "estimate, s", "actual, s", measure.c_str(),
              "outcome");
  for (const StageResult& stage : r.stages) {
    std::string divergences;
    for (const SyntheticResult& s : stage.synthetic) {
      char text[32];
      std::snprintf(text, sizeof text, "%s%.4f", divergences.empty() ? "" : ", ", s.divergence);
      divergences += text;
    }
    std::printf("%-34s %11.0f %9.1f  %-24s %s\n", stage.name.c_str(), stage.estimate, stage.seconds,
                divergences.c_str(), stage.outcome.c_str());
  }
}

void print_time(const QuantizeReport& r) {
  std::printf("%-10s %.1f s", "time", r.seconds);
  if (r.iterations > 0) std::printf(", %lld iterations", static_cast<long long>(r.iterations));
  if (r.evaluation_seconds > 0) std::printf("; %.1f s of it to measure", r.evaluation_seconds);
  std::printf("\n");
}

// `notes`: whether to print those, which the run has told already unless it was quiet.
void print_summary(const QuantizeReport& r, const std::filesystem::path& output, bool notes) {
  print_stages(r);
  std::printf("%-10s %s, mode %s, recipe %s, seed %lld\n", "scheme", r.scheme.c_str(),
              r.mode.c_str(), r.recipe.c_str(), static_cast<long long>(r.seed));
  std::printf("%-10s %.1f kB -> %.1f kB of parameters\n", "size",
              static_cast<double>(r.fp32_bytes) / 1e3,
              static_cast<double>(r.quantized_bytes) / 1e3);
  if (r.mixed) print_bits(r);
  if (r.preprocessing.empty() || !r.pixel_range_known)
    std::printf("%-10s %s\n", "pixels", r.pixels.c_str());
  for (const auto& note : notes ? r.notes : std::vector<std::string>())
    std::printf("%-10s %s\n", "note", note.c_str());
  print_boxes("teacher", r.teacher_boxes);
  print_boxes("student", r.student_boxes);
  print_pixels("teacher", r.teacher_pixels);
  print_pixels("student", r.student_pixels);
  print_accuracy("teacher", r.teacher);
  print_accuracy("student", r.student);
  for (const SyntheticResult& s : r.synthetic) {
    std::printf(
        "%-10s %s, on %lld held-out %s images\n", "agreement",
        pipeline::measures_in_words(r.output_kind, r.outputs, s.divergence, s.agreement).c_str(),
        static_cast<long long>(s.images), pipeline::images_in_words(s.kind).c_str());
    // one alone is what was said of all
    if (s.outputs.size() > 1) std::fputs(pipeline::lines_of(s.outputs).c_str(), stdout);
  }
  if (!r.costliest_layer.empty())
    std::printf("%-10s %s has the lowest SQNR\n", "layer", r.costliest_layer.c_str());
  if (r.float_share && *r.float_share > 0)
    std::printf("%-10s %.2g %% of the multiply-accumulates on %s\n", "float", 100 * *r.float_share,
                r.target.c_str());
  if (r.saturation)
    std::printf("%-10s the same on every x86 processor: %s\n", "arithmetic",
                r.saturation->words.c_str());
  if (!r.verdict.empty()) std::printf("%-10s %s\n", "verdict", r.verdict.c_str());
  print_time(r);
  for (const auto& file : r.files) std::printf("%-10s %s\n", "wrote", file.c_str());
  std::printf("%-10s %s\n", "wrote", (output / "report.html").c_str());
  if (!pipeline::has_labels(r.output_kind))
    std::printf("%-10s zsq compare %s %s --data IMAGES%s\n", "next", r.model.c_str(),
                output.c_str(), r.preprocessing.empty() ? " --preset NAME" : "");
  else if (!r.student)
    std::printf("%-10s zsq eval %s --data IMAGES%s\n", "next", output.c_str(),
                r.preprocessing.empty() ? " --preset NAME" : "");
}

}  // namespace

int quantize(const Arguments& arguments) {
  Flags flags(
      "zsq quantize MODEL --scheme W4A4 -o FOLDER",
      "Quantizes a trained CNN (ONNX, TorchScript, .pt2, safetensors or .pth) without data.\n"
      "Writes model.onnx, model.safetensors, report.json, report.html and resolved.yaml into "
      "FOLDER.");
  flags.positional("model", 1);
  flags.text("scheme", "WxAy", "bits of weights and activations (W4A4, 4w4a)");
  flags.setting("target_size", "SIZE", "bits per layer for parameters of 120kB, 0.6MB, or 50%",
                "mixed.target_size");
  flags.setting("target_bops", "N",
                "bits per layer for 1.2G bit operations, or 50% of those of W8A8",
                "mixed.target_bops");
  flags.setting("target_cost", "N",
                "bits per layer for costs of --cost_table that sum to N, or 50%",
                "mixed.target_cost");
  flags.setting("cost_table", "FILE",
                "CSV layer,bits,cost: what each layer costs on an accelerator", "mixed.cost_table");
  flags.text("output_path,o", "FOLDER", "where the results go");
  flags.text("recipe", "NAME|FILE",
             "settings of the run; `zsq recipes` lists them (default: auto)");
  flags.text(
      "effort", "LEVEL",
      "seconds, minute, minutes or half_hour: chooses the recipe for you (EfficientNet-Lite0 "
      "at W4A4 takes as long on two cores)");
  flags.setting("eval_data", "PATH", "real images to measure with; never influences the result",
                "data.eval_data");
  flags.setting("eval_cache", "FOLDER", "keeps decoded images for the next run", "data.eval_cache");
  flags.toggle_setting(
      "require_bn",
      "refuse a network without BatchNorm (else statistics of synthetic images serve)",
      "model.require_bn");
  flags.preprocessing();
  flags.setting("seed", "N", "fixes every random draw", "process.seed");
  flags.setting("time_budget", "TIME", "end in 600, 600s, 10min or 2h (default: 10min)",
                "process.time_budget");
  flags.setting("memory_limit", "SIZE", "fit batches and caches into 6GB, or 50% of the machine's",
                "process.memory_limit");
  flags.text("min_top1", "PERCENT", "exit with 3 if the student's top-1 is below");
  flags.text("min_agreement", "PERCENT",
             "exit with 3 if it agrees with the original on fewer held-out synthetic images");
  flags.toggle("resume", "go on from FOLDER/checkpoint, if there is one");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::string model = flags.required("model", "MODEL");
  const std::filesystem::path output = flags.get("output_path");
  if (output.empty()) throw Error(ErrorCode::usage, "--output_path/-o FOLDER is missing");
  QuantizeOptions options;
  options.recipe = flags.recipe("auto");
  options.resume = flags.on("resume");
  options.min_top1 = flags.number("min_top1", 0);
  options.min_agreement = flags.number("min_agreement", 0);
  Console console(flags);
  limit_process_memory(options.recipe.process.memory_limit);
  const QuantizeReport report = zsq::quantize(model, options, output, &console);
  if (!launch::is_first()) return 0;
  if (json)
    std::cout << to_json(report);
  else
    print_summary(report, output, flags.on("quiet"));
  return 0;
}

}  // namespace zsq::cli
