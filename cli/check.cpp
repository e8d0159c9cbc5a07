// SPDX-License-Identifier: Apache-2.0
#include "pipeline/check.h"

#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "pipeline/report/grid.h"
#include "pipeline/session/format.h"

namespace zsq::cli {
namespace {

using pipeline::format;

std::string milliseconds(double value) { return value > 0 ? format("%.3f", value) : "-"; }

std::string agreement(const CheckReport& report, const RuntimeCheck& row) {
  if (report.output_kind != "logits") return format("%.4f", row.agreement);
  const auto images = static_cast<double>(report.images);
  return format("%.0f", row.agreement * images) + format(" of %.0f", images);
}

std::string difference(const CheckReport& report, const RuntimeCheck& row) {
  return report.step > 0 ? format("%.2f", row.steps)
                         : format("%.2g %%", 100 * row.relative_difference);
}

void print_table(const CheckReport& report, bool latency) {
  const char* same = report.output_kind == "logits" ? "same class" : "agreement";
  pipeline::Grid grid{{{"runtime"},
                       {"file"},
                       {same, true},
                       {report.step > 0 ? "steps apart" : "apart", true},
                       {"equal"}},
                      {}};
  if (latency)
    for (const char* head : {"float ms", "int8 ms", "ratio"}) grid.columns.push_back({head, true});
  for (const RuntimeCheck& row : report.rows) {
    const bool ran = row.error.empty();
    std::vector<std::string> cells{
        row.runtime + " " + row.version, row.file, ran ? agreement(report, row) : "-",
        ran ? difference(report, row) : "-", ran ? (row.equal ? "yes" : "no") : "fails"};
    if (latency) {
      cells.push_back(milliseconds(row.float_ms));
      cells.push_back(milliseconds(row.ms));
      const bool both = row.ms > 0 && row.float_ms > 0;
      cells.push_back(both ? format("%.2fx", row.float_ms / row.ms) : "-");
    }
    grid.rows.push_back(std::move(cells));
  }
  std::printf("%s", pipeline::to_text(grid).c_str());
}

void print(const CheckReport& report, bool latency) {
  print_table(report, latency);
  std::printf("\ncompared with zsq's own result of %s on %lld %s images",
              report.compared_with.c_str(), static_cast<long long>(report.images),
              report.images_kind.c_str());
  if (latency)
    std::printf("; ms: medians of one image, %lld threads", static_cast<long long>(report.threads));
  std::printf("\n");
  if (!report.not_compared.empty())
    std::printf(
        "not compared is the end of the network (%s), which only runtimes compute: what it "
        "reads is compared\n",
        report.not_compared.c_str());
  for (const std::string& sentence : report.verdict) std::printf("%s\n", sentence.c_str());
  for (const RuntimeCheck& row : report.rows)
    if (!row.decides && !row.error.empty())
      std::printf("%s does not run %s: %s\n", row.runtime.c_str(), row.file.c_str(),
                  row.error.c_str());
  if (!report.fastest.empty()) std::printf("%s\n", report.fastest.c_str());
}

}  // namespace

int check(const Arguments& arguments) {
  Flags flags(
      "zsq check FOLDER",
      "Runs the files of a finished `zsq quantize` in the runtimes that are installed here, at\n"
      "their default settings, and says whether they compute what zsq measured, and how fast.\n"
      "Runtimes are found in a Python: that of --python, of the variable ZSQ_PYTHON, of the "
      "source\n"
      "tree, or python3 on PATH. Exit code 3 where one computes something else.");
  flags.positional("folder", 1);
  flags.setting("data", "PATH", "real images (default: the run's held-out synthetic ones)",
                "data.eval_data");
  flags.preprocessing();
  flags.text("images", "N", "how many images (default: 64)");
  flags.text("python", "PATH", "a Python with onnxruntime, openvino, ai-edge-litert or ncnn");
  flags.text("model", "FILE", "the float network of the run, if it is not where it was");
  flags.toggle("no_latency", "compare only, measure no time");
  flags.text("threads", "N", "CPU threads of a runtime (default: 2)");
  flags.text("timeout", "SECONDS", "the most that one file takes in one runtime (default: 600)");
  flags.text("format", "human|json", "form of the result on stdout");
  flags.text("log_level", "LEVEL", "debug, info or warning");
  flags.toggle("quiet", "no progress and no messages");
  flags.toggle("help,h", "this text");
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const std::filesystem::path folder = flags.required("folder", "FOLDER");
  CheckOptions options;
  options.data = flags.recipe().data;
  options.images = flags.count("images", options.images);
  options.model = flags.get("model");
  options.python = flags.get("python");
  options.latency = !flags.on("no_latency");
  options.threads = flags.count("threads", options.threads);
  options.timeout = flags.number("timeout", options.timeout);
  if (options.timeout <= 0)
    throw Error(ErrorCode::usage, "--timeout: '" + flags.get("timeout") + "' is not above 0");
  Console console(flags);
  const CheckReport report = check_run(folder, options, &console);
  if (json)
    std::cout << to_json(report) << "\n";
  else
    print(report, options.latency);
  return report.equal ? 0 : exit_code(ErrorCode::accuracy_gate);
}

}  // namespace zsq::cli
