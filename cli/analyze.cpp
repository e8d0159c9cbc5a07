// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analyze.h"

#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"

namespace zsq::cli {
namespace {

void print(const AnalyzeReport& report) {
  for (const auto& [what, value] : report.figures) std::printf("%12.4g  %s\n", value, what.c_str());
  std::printf("%10.1f s  %s, %lld iterations, seed %lld\n", report.seconds, report.scheme.c_str(),
              static_cast<long long>(report.iterations), static_cast<long long>(report.seed));
  for (const auto& file : report.files) std::printf("wrote         %s\n", file.c_str());
}

int print_names() {
  for (const AnalysisName& analysis : analyses())
    std::printf("%-20s %s\n", analysis.name.c_str(), analysis.about.c_str());
  return 0;
}

}  // namespace

int analyze(const Arguments& arguments) {
  Flags flags(
      "zsq analyze NAME MODEL -o FOLDER",
      "Trains a student of MODEL by a short schedule and does an analysis of AIT or Qimera on it:\n"
      "a table (NAME.csv), a picture (NAME.svg) and its figures. Without NAME the analyses are\n"
      "listed; NAME all runs them one after the other. Real images are only looked at.");
  flags.positional("words", 2);
  flags.text("recipe", "NAME", "what is trained (default: analyze, see `zsq recipes analyze`)");
  flags.text("scheme", "WxAy", "bits of weights and activations (W4A4, 4w4a)");
  flags.setting("iterations", "N", "of the training, warm-up included (default: the recipe's, 200)",
                "finetune.iterations");
  flags.setting("data", "PATH", "real images, for analyses that show some", "data.eval_data");
  flags.setting("seed", "N", "fixes every random draw", "process.seed");
  flags.preprocessing();
  flags.text("count,n", "N", "images that are looked at (default: 256)");
  flags.text("looks", "N", "moments of a training, or points along a direction (default: 20)");
  flags.text("output_path,o", "FOLDER", "where table and picture go");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const auto words = flags.list("words");
  if (words.empty()) return print_names();
  if (words.size() < 2) throw Error(ErrorCode::usage, "MODEL is missing: zsq analyze NAME MODEL");
  if (!flags.has("output_path"))
    throw Error(ErrorCode::usage, "--output_path/-o FOLDER is missing");
  AnalyzeOptions options;
  options.recipe = flags.recipe("analyze");
  options.images = flags.count("count", options.images);
  options.looks = flags.count("looks", options.looks);
  std::vector<std::string> names{words[0]};
  if (words[0] == "all") {
    names.clear();
    for (const AnalysisName& analysis : analyses()) names.push_back(analysis.name);
  }
  Console console(flags);
  for (const std::string& name : names) {
    const AnalyzeReport report =
        zsq::analyze(name, words[1], options, flags.get("output_path"), &console);
    if (json)
      std::cout << to_json(report) << "\n";
    else
      print(report);
  }
  return 0;
}

}  // namespace zsq::cli
