// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/system_noise.h"
#include "cli/verbs.h"
#include "pipeline/evaluate.h"

namespace zsq::cli {

int eval(const Arguments& arguments) {
  Flags flags(
      "zsq eval MODEL --data PATH --preset NAME|FILE",
      "Top-1 and top-5 of a float model, an exported model or the output folder of a run; mean "
      "average precision and F1 where the data has sets of labels.\n"
      "PATH: an image folder per class, CIFAR binaries, or an npz with images and labels.");
  flags.positional("model", 1);
  flags.setting("data", "PATH", "real images", "data.eval_data");
  flags.preprocessing();
  flags.setting("max_images", "N", "the first N images only", "data.eval_images");
  flags.setting("batch_size", "N", "images per forward pass", "data.eval_batch_size");
  flags.setting("eval_cache", "FOLDER", "keeps decoded images for the next run", "data.eval_cache");
  flags.text("sysnoise", "SOURCES",
             "how far predictions move where a deployment decodes, resizes or computes in another "
             "way: all, or a list of decode, resize, colour, precision, pool, padding");
  flags.text("against", "FLOAT",
             "with --sysnoise: the float model, to see what quantization adds to its own change");
  flags.arithmetic();
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::string model = flags.required("model", "MODEL");
  const Recipe recipe = flags.recipe();
  const EvaluateOptions options{recipe.model, recipe.data, recipe.process,
                                flags.chosen_arithmetic()};
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
  if (flags.has("against"))
    throw Error(ErrorCode::usage,
                "--against is a part of --sysnoise; to compare two models layer "
                "by layer: zsq compare A B");
  const EvalReport report = zsq::evaluate(model, options, &console);
  if (json)
    std::cout << to_json(report) << "\n";
  else if (report.labels)
    std::printf(
        "mean average precision %.2f %%  F1 %.2f %%  labels right at 0.5 %.2f %%  (%lld images, "
        "%.1f s)\n",
        report.labels->mean_average_precision, report.labels->f1, report.labels->accuracy,
        static_cast<long long>(report.images), report.seconds);
  else if (report.output_kind == "scores")
    std::printf("%s %.2f %%  (%lld images, %.1f s)\n",
                report.outputs == 1 ? "label right at 0.5" : "label has the highest score",
                report.top1, static_cast<long long>(report.images), report.seconds);
  else
    std::printf("top-1 %.2f %%  top-5 %.2f %%  (%lld images, %.1f s)\n", report.top1, report.top5,
                static_cast<long long>(report.images), report.seconds);
  return 0;
}

}  // namespace zsq::cli
