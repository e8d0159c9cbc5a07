// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.h"

#include <cstdio>
#include <iostream>

#include "cli/flags.h"
#include "cli/verbs.h"

namespace zsq::cli {

int report(const Arguments& arguments) {
  Flags flags(
      "zsq report FOLDER...",
      "Shows finished runs of `zsq quantize`: one, and its page report.html is written again;\n"
      "several, and their results, settings and layers stand side by side, with -o also as a\n"
      "page.");
  flags.positional("folder", -1);
  flags.text("output_path,o", "FILE.html", "the page (default for one run: FOLDER/report.html)");
  flags.text("format", "human|json", "form of the result on stdout");
  flags.toggle("quiet", "no messages");
  flags.toggle("help,h", "this text");
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::filesystem::path first = flags.required("folder", "FOLDER");
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : flags.list("folder")) folders.emplace_back(folder);
  std::filesystem::path output = flags.get("output_path");
  if (output.empty() && folders.size() == 1) output = first / "report.html";
  const RunsReport runs = report_runs(folders, output);
  std::cout << (json ? runs.json + "\n" : runs.text);
  if (!output.empty() && !flags.on("quiet")) std::cerr << "wrote " << output.string() << "\n";
  return 0;
}

}  // namespace zsq::cli
