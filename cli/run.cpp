// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run.h"

#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"

namespace zsq::cli {
namespace {

std::string verdict_of(const CompareReport& report) {
  if (!report.by_rounding) return report.equal ? "equal" : "different";
  char text[96];
  std::snprintf(text, sizeof text, "equal (rounding: %.2e from a run in double)", report.rounding);
  return text;
}

int compare(const Flags& flags, const std::string& model, const RunOptions& options, bool json) {
  if (!flags.has("npz") || !flags.on("compare"))
    throw Error(ErrorCode::usage, "--npz FILE and --compare belong together");
  Console console(flags);
  const CompareReport report = compare_with_arrays(model, flags.get("npz"), options,
                                                   flags.number("tolerance", 1e-4), &console);
  if (json)
    std::cout << to_json(report) << "\n";
  else
    std::printf("%s: relative error %.2e, tolerance %.2e\n", verdict_of(report).c_str(),
                report.relative_error, report.tolerance);
  return report.equal ? 0 : exit_code(ErrorCode::accuracy_gate);
}

void print_classes(const std::vector<ImageClasses>& results) {
  for (const ImageClasses& result : results)
    for (const ClassScore& c : result.classes)
      std::printf("%s\t%lld%s%s\t%.4f\n", result.image.c_str(), static_cast<long long>(c.index),
                  c.name.empty() ? "" : " ", c.name.c_str(), c.score);
}

}  // namespace

int run(const Arguments& arguments) {
  Flags flags(
      "zsq run MODEL IMAGE... --preset NAME|FILE",
      "Class and score of each image; MODEL is a float model, an exported model or the output\n"
      "folder of a run. With --npz FILE --compare: feeds the array `input` of FILE and exits 0\n"
      "where the result equals its array `output`, rounding of float apart, 3 where it does not.");
  flags.positional("model", 1);
  flags.positional("image", -1);
  flags.preprocessing();
  flags.text("classes", "FILE", "names of the classes, one per line");
  flags.text("top", "N", "classes per image (default: 1)");
  flags.text("npz", "FILE", "arrays `input` and `output`");
  flags.toggle("compare", "compare with the array `output`");
  flags.text("tolerance", "X", "largest relative difference that counts as equal (default: 1e-4)");
  flags.arithmetic();
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::string model = flags.required("model", "MODEL");
  const Recipe recipe = flags.recipe();
  // Whoever gives a tolerance wants that one.
  const RunOptions options{recipe.model,
                           recipe.process,
                           recipe.data,
                           flags.get("classes"),
                           flags.count("top", 1),
                           !flags.has("tolerance"),
                           flags.chosen_arithmetic()};
  if (flags.has("npz") || flags.on("compare")) return compare(flags, model, options, json);
  flags.required("image", "IMAGE");
  const auto images = flags.list("image");
  Console console(flags);
  const auto results = classify(model, {images.begin(), images.end()}, options, &console);
  if (json)
    std::cout << to_json(results) << "\n";
  else
    print_classes(results);
  return 0;
}

}  // namespace zsq::cli
