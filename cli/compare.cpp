// SPDX-License-Identifier: Apache-2.0
#include "pipeline/compare.h"

#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "pipeline/report/output_words.h"

namespace zsq::cli {
namespace {

void print_names(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::printf("%s", title);
  for (const std::string& name : names) std::printf(" %s", name.c_str());
  std::printf("\n");
}

void print(const ModelComparison& c) {
  std::size_t width = 5;
  for (const auto& layer : c.layers) width = std::max(width, layer.name.size());
  std::printf("%-*s  %9s  %14s  %17s\n", static_cast<int>(width), "layer", "SQNR, dB",
              "mean b - a, sd", "largest |b-a|, sd");
  for (const auto& layer : c.layers)
    std::printf("%-*s  %9.2f  %14.4f  %17.3f\n", static_cast<int>(width), layer.name.c_str(),
                layer.sqnr, layer.mean, layer.largest);
  print_names("only in a:", c.only_in_a);
  print_names("only in b:", c.only_in_b);
  const auto words = pipeline::words_for(c.output_kind, c.outputs);
  const std::string images = pipeline::images_in_words(c.images_kind);
  if (c.output_kind == "logits")
    std::printf(
        "predictions: the same class on %.2f %% of %lld %s images, KL %.4g nats per image\n",
        100 * c.agreement, static_cast<long long>(c.images), images.c_str(), c.divergence);
  else
    std::printf("predictions: %s %.4f and %s %.4g %s, on %lld %s images\n", words.agreement.c_str(),
                c.agreement, words.divergence.c_str(), c.divergence, words.unit.c_str(),
                static_cast<long long>(c.images), images.c_str());
  std::fputs(pipeline::lines_of(c.outputs_apart).c_str(), stdout);
}

}  // namespace

int compare(const Arguments& arguments) {
  Flags flags("zsq compare A B",
              "Compares two models on the same images, layer by layer, the worst layer first.\n"
              "A and B: model files or output folders of `zsq quantize`, of one network. Without\n"
              "--data the images are synthetic.");
  flags.positional("models", 2);
  flags.setting("data", "PATH", "real images (default: synthetic ones)", "data.eval_data");
  flags.toggle("synthetic", "synthetic images, which is the default");
  flags.preprocessing();
  flags.text("count,n", "N", "how many images (default: 64)");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const auto models = flags.list("models");
  if (models.size() != 2)
    throw Error(ErrorCode::usage, std::to_string(models.size()) +
                                      " models were given; two are compared: zsq compare A B");
  CompareOptions options;
  options.recipe = flags.recipe();
  options.images = flags.count("count", options.images);
  if (flags.on("synthetic") && !options.recipe.data.eval_data.empty())
    throw Error(ErrorCode::usage, "--data and --synthetic are both given; choose one");
  Console console(flags);
  const ModelComparison comparison = compare_models(models[0], models[1], options, &console);
  if (json)
    std::cout << to_json(comparison) << "\n";
  else
    print(comparison);
  return 0;
}

}  // namespace zsq::cli
