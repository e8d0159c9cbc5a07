// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/system_noise.h"
#include "cli/verbs.h"
#include "pipeline/evaluate.h"
#include "pipeline/report/output_words.h"

namespace zsq::cli {
namespace {

// As COCO's tools list it.
void print_boxes(const BoxReport& report) {
  const eval::BoxMeasures& m = report.measures;
  const auto line = [](const char* name, double value, const char* of) {
    if (std::isnan(value))
      std::printf("%-6s      -    %s\n", name, of);
    else
      std::printf("%-6s %6.2f %%  %s\n", name, value, of);
  };
  line("AP", m.ap, "IoU 0.50 to 0.95");
  line("AP50", m.ap50, "IoU 0.50");
  line("AP75", m.ap75, "IoU 0.75");
  line("AP", m.ap_small, "small, up to 32 x 32 pixels");
  line("AP", m.ap_medium, "medium");
  line("AP", m.ap_large, "large, from 96 x 96 pixels");
  line("AR@100", m.ar100, "IoU 0.50 to 0.95, 100 boxes per image and category");
  std::printf("%lld boxes, %lld detections, layout %s, categories %s",
              static_cast<long long>(m.boxes), static_cast<long long>(m.detections),
              report.layout.c_str(), report.categories.c_str());
}

void print(const EvalReport& report) {
  const auto images = static_cast<long long>(report.images);
  if (report.boxes)
    print_boxes(*report.boxes);
  else if (report.measured == "pixels")
    std::printf("pixel accuracy %.2f %%  mean IoU %.2f %%", report.pixel_accuracy, report.mean_iou);
  else if (report.labels)
    std::printf("mean average precision %.2f %%  F1 %.2f %%  labels right at 0.5 %.2f %%",
                report.labels->mean_average_precision, report.labels->f1, report.labels->accuracy);
  else if (report.measured == "classes" && report.output_kind == "scores")
    std::printf("%s %.2f %%",
                report.outputs == 1 ? "label right at 0.5" : "label has the highest score",
                report.top1);
  else if (report.measured == "classes")
    std::printf("top-1 %.2f %%  top-5 %.2f %%", report.top1, report.top5);
  else
    std::printf("no labels are counted");
  std::printf("  (%lld images, %.1f s)\n", images, report.seconds);
  if (report.against.empty()) return;
  const OutputAgreement& difference = report.difference;
  std::printf("agreement  %s\n",
              pipeline::measures_in_words(report.output_kind, report.outputs, difference.divergence,
                                          difference.agreement)
                  .c_str());
  if (difference.outputs_apart.size() > 1)
    std::fputs(pipeline::lines_of(difference.outputs_apart).c_str(), stdout);
}

}  // namespace

int eval(const Arguments& arguments) {
  Flags flags(
      "zsq eval MODEL --data PATH --preset NAME|FILE",
      "A float model, an exported model or the output folder of a run on real images: top-1\n"
      "and top-5, of sets of labels mean average precision and F1, of segmentation pixel\n"
      "accuracy and mean IoU, of detectors COCO's AP (--annotations), and with --against how\n"
      "near its outputs are to those of the float model, for which no labels are needed.\n"
      "PATH: an image folder per class, CIFAR binaries, JPEGImages with SegmentationClass,\n"
      "a folder of images, or an npz with images and labels.");
  flags.positional("model", 1);
  flags.setting("data", "PATH", "real images", "data.eval_data");
  flags.preprocessing();
  flags.setting("max_images", "N", "the first N images only", "data.eval_images");
  flags.setting("batch_size", "N", "images per forward pass", "data.eval_batch_size");
  flags.setting("annotations", "FILE",
                "COCO JSON with the boxes of the images: measures a detector", "data.annotations");
  flags.setting("boxes", "LAYOUT",
                "of a detector's outputs, where names and shapes do not tell: yolov8, yolov5, ssd, "
                "yunet, decoded",
                "data.boxes");
  flags.setting("eval_cache", "FOLDER", "keeps decoded images for the next run", "data.eval_cache");
  flags.text("sysnoise", "SOURCES",
             "how far predictions move where a deployment decodes, resizes or computes in another "
             "way: all, or a list of decode, resize, colour, precision, pool, padding");
  flags.text(
      "against", "FLOAT",
      "the float model, whose outputs are compared; with --sysnoise to see what quantization "
      "adds to its own change");
  flags.arithmetic();
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::string model = flags.required("model", "MODEL");
  const Recipe recipe = flags.recipe();
  const EvaluateOptions options{recipe.model, recipe.data, recipe.process,
                                flags.chosen_arithmetic(),
                                flags.has("sysnoise") ? "" : flags.get("against")};
  Console console(flags);
  if (flags.has("sysnoise")) {
    const auto report = measure_system_noise(
        model, {options, parse_noise_sources(flags.get("sysnoise")), flags.get("against")},
        &console);
    if (json)
      std::cout << to_json(report) << "\n";
    else
      print(report);
    return 0;
  }
  const EvalReport report = zsq::evaluate(model, options, &console);
  if (json)
    std::cout << to_json(report) << "\n";
  else
    print(report);
  return 0;
}

}  // namespace zsq::cli
