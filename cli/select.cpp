// SPDX-License-Identifier: Apache-2.0
#include "pipeline/select.h"

#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "pipeline/report/output_words.h"

namespace zsq::cli {

int select(const Arguments& arguments) {
  Flags flags("zsq select FOLDER...",
              "Ranks output folders of `zsq quantize` by the divergence of their outputs from the "
              "original's\n"
              "(KL of classes and labels, relative squared error of values), on held-out synthetic "
              "images:\n"
              "no real image is needed.");
  flags.positional("folder", -1);
  flags.text("model", "FILE", "the original model (default: where the first folder's report says)");
  flags.text("images", "FILE",
             "bank of `zsq generate --form safetensors` (default: made once, and kept)");
  flags.text("count,n", "N", "how many images (default: 64)");
  flags.texts("set", "KEY=VALUE", "one recipe setting, as generate.images.steps=100");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  flags.required("folder", "FOLDER");
  SelectOptions options;
  options.recipe = flags.recipe("deploy+optimised_leaves");
  options.model = flags.get("model");
  options.bank = flags.get("images");
  options.images = flags.count("count", options.images);
  Console console(flags);
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : flags.list("folder")) folders.emplace_back(folder);
  const SelectReport report = zsq::select(folders, options, &console);
  if (json) {
    std::cout << to_json(report) << "\n";
    return 0;
  }
  const bool values = !pipeline::has_labels(report.output_kind);
  std::printf("%4s  %10s  %9s  %9s  %-8s %s\n", "rank", values ? "error" : "KL, nats", "agreement",
              "kB", "scheme", "folder");
  int rank = 0;
  for (const SelectRow& row : report.rows) {
    std::printf("%4d  %10.4g  %7.2f %%  %9.1f  %-8s %s\n", ++rank, row.divergence,
                100 * row.agreement, static_cast<double>(row.quantized_bytes) / 1e3,
                row.scheme.c_str(), row.folder.c_str());
    if (row.outputs.size() > 1) std::fputs(pipeline::lines_of(row.outputs).c_str(), stdout);
  }
  return 0;
}

}  // namespace zsq::cli
