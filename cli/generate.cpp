// SPDX-License-Identifier: Apache-2.0
#include "pipeline/generate.h"

#include <cmath>
#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "launch/ranks.h"

namespace zsq::cli {
namespace {

std::int64_t image_count(const Flags& flags, std::int64_t fallback) {
  const double count = flags.number("images", static_cast<double>(fallback));
  if (count < 1 || count > 1e8 || count != std::floor(count))
    throw Error(ErrorCode::usage,
                "--images: '" + flags.get("images") + "' is not a whole number of 1 or more");
  return static_cast<std::int64_t>(count);
}

void print_summary(const GenerateReport& r, const std::filesystem::path& output) {
  std::printf("%-10s %lld, %lld steps in %.1f s, seed %lld\n", "images",
              static_cast<long long>(r.images), static_cast<long long>(r.steps), r.seconds,
              static_cast<long long>(r.seed));
  std::printf("%-10s %.2f %% of the images are to the model what they were made to be\n", "labels",
              100 * r.label_agreement);
  std::printf("%-10s cross-entropy %.4g, BatchNorm statistics %.4g\n", "losses", r.cross_entropy,
              r.batch_norm_statistics);
  if (r.files.size() <= 2)
    for (const auto& file : r.files) std::printf("%-10s %s\n", "wrote", file.c_str());
  else
    std::printf("%-10s %s, %s to %s\n", "wrote", output.c_str(), r.files.front().filename().c_str(),
                r.files.back().filename().c_str());
}

}  // namespace

int generate(const Arguments& arguments) {
  std::string forms;
  for (const std::string& form : image_forms()) forms += (forms.empty() ? "" : "|") + form;
  Flags flags("zsq generate MODEL -o FOLDER",
              "Images that a trained CNN takes for its classes, made from its weights alone.\n"
              "png: an image folder per class; ort: test_data_set_*; safetensors: a bank for\n"
              "`zsq quantize --set generate.bank=FILE --set generate.bank_share=0.5`.");
  flags.positional("model", 1);
  flags.text("output_path,o", "FOLDER", "where the images go");
  flags.text("images,n", "N", "how many (default: 256)");
  flags.text("form", forms, "how they are stored (default: png)");
  flags.text("recipe", "NAME|FILE", "recipe with the settings generate.images.*");
  flags.toggle_setting(
      "require_bn",
      "refuse a network without BatchNorm (else statistics of synthetic images serve)",
      "model.require_bn");
  flags.preprocessing();
  flags.setting("seed", "N", "fixes every random draw", "process.seed");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::string model = flags.required("model", "MODEL");
  const std::filesystem::path output = flags.get("output_path");
  if (output.empty()) throw Error(ErrorCode::usage, "--output_path/-o FOLDER is missing");
  GenerateOptions options;
  options.recipe = flags.recipe();
  options.images = image_count(flags, options.images);
  if (flags.has("form")) options.form = flags.get("form");
  Console console(flags);
  const GenerateReport report = zsq::generate(model, options, output, &console);
  if (!launch::is_first()) return 0;
  if (json)
    std::cout << to_json(report) << "\n";
  else
    print_summary(report, output);
  return 0;
}

}  // namespace zsq::cli
