// SPDX-License-Identifier: Apache-2.0
#include "pipeline/export.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "core/choice.h"

namespace zsq::cli {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + name;
  return text;
}

void print(const ExportedRun& exported) {
  std::size_t width = 5;
  for (const ExportedLayer& layer : exported.layers) width = std::max(width, layer.name.size());
  const int w = static_cast<int>(width);
  std::printf("%-*s  %-8s  %-11s  %-17s  %s\n", w, "layer", "operator", "executes as", "speed",
              "why");
  for (const ExportedLayer& layer : exported.layers)
    std::printf("%-*s  %-8s  %-11s  %-17s  %s\n", w, layer.name.c_str(), layer.op.c_str(),
                layer.executes_as.c_str(), layer.speed.c_str(), layer.reason.c_str());
  std::printf("\n%.1f %% of the layers in integers; %lld bytes in %s\n",
              100 * exported.integer_share, static_cast<long long>(exported.bytes),
              exported.file.c_str());
}

}  // namespace

int export_verb(const Arguments& arguments) {
  Flags flags(
      "zsq export FOLDER --target NAME",
      "Writes the model of a finished `zsq quantize` for another runtime, and says how that\n"
      "executes each layer. Codes and scales stay as they are; what the target cannot hold\n"
      "exactly is refused. FOLDER is the output folder of the run.");
  flags.positional("folder", 1);
  flags.text("target", joined(names_of<Target>()), "rules that the file follows");
  flags.text("output_path,o", "FILE",
             "the file (default: FOLDER/model.NAME.onnx; .tflite for tflite; for ncnn .param, with "
             ".bin beside it)");
  flags.text("model", "FILE",
             "the float network of the run, if it is not where it was: its structure is needed");
  flags.text("format", "human|json", "form of the result on stdout");
  flags.toggle("quiet", "no messages");
  flags.text("log_level", "LEVEL", "debug, info or warning");
  flags.toggle("help,h", "this text");
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::filesystem::path folder = flags.required("folder", "FOLDER");
  ExportRunOptions options;
  if (!flags.has("target"))
    throw Error(ErrorCode::usage, "--target NAME is missing; known: " + joined(names_of<Target>()));
  options.target = choice<Target>("target", flags.get("target"), "--target: ");
  options.output = flags.get("output_path");
  options.model = flags.get("model");
  Console console(flags);
  const ExportedRun exported = export_run(folder, options, &console);
  if (json)
    std::cout << to_json(exported) << "\n";
  else
    print(exported);
  return 0;
}

}  // namespace zsq::cli
