// SPDX-License-Identifier: Apache-2.0
#include "pipeline/reproduce.h"

#include <cstdio>
#include <iostream>
#include <sstream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"

namespace zsq::cli {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

std::int64_t whole_number(const std::string& flag, const std::string& text) {
  if (!text.empty() && text.size() < 16 &&
      text.find_first_not_of("0123456789") == std::string::npos)
    return std::stoll(text);
  throw Error(ErrorCode::usage, "--" + flag + ": '" + text + "' is not a whole number");
}

void print_list(const ReproduceReport& report) {
  std::printf("%4s  %-36s %5s  %s\n", "cell", "row", "seed", "state");
  for (const ReproduceCell& cell : report.cells)
    std::printf("%4lld  %-36s %5lld  %s\n", static_cast<long long>(cell.number), cell.row.c_str(),
                static_cast<long long>(cell.seed), cell.finished ? "finished" : "missing");
}

void declare(Flags& flags) {
  flags.positional("table", 1);
  flags.text("model", "FILE", "the trained CNN");
  flags.text("output_path,o", "FOLDER", "where cells and table go");
  flags.text("scheme", "WxAy", "bits of weights and activations of every row (W4A4, 4w4a)");
  flags.text("seeds", "N,N,...", "one cell per row and seed (default: 0)");
  flags.text("rows", "NAME,...", "only rows whose names start so");
  flags.text("jobs", "N",
             "cells side by side (default: 1); OMP_NUM_THREADS or --threads sets "
             "the threads of each");
  flags.text("iterations", "N", "of rows that train (default: their recipes')");
  flags.text("time_budget", "TIME", "of each cell that trains (600, 10min, 2h)");
  flags.text("bank_images", "N", "images of the bank, for rows that learn from one (default: 256)");
  flags.toggle("list", "the cells and which are finished; runs nothing");
  flags.text("cell", "K", "only this cell of --list, as one job of an array");
  flags.setting("eval_data", "PATH", "real images to measure with", "data.eval_data");
  flags.preprocessing();
  flags.common();
}

ReproduceOptions options_of(const Flags& flags) {
  ReproduceOptions options;
  options.table = flags.required("table", "TABLE");
  options.model = flags.get("model");
  options.output = flags.get("output_path");
  if (options.model.empty()) throw Error(ErrorCode::usage, "--model FILE is missing");
  if (options.output.empty()) throw Error(ErrorCode::usage, "--output_path/-o FOLDER is missing");
  options.program = std::filesystem::read_symlink("/proc/self/exe");
  options.settings = flags.overrides();
  if (flags.has("iterations"))
    options.training.push_back("finetune.iterations=" + flags.get("iterations"));
  if (flags.has("time_budget"))
    options.training.push_back("process.time_budget=" + flags.get("time_budget"));
  if (flags.has("seeds")) {
    options.seeds.clear();
    for (const std::string& seed : split(flags.get("seeds")))
      options.seeds.push_back(whole_number("seeds", seed));
  }
  options.rows = split(flags.get("rows"));
  options.jobs = flags.count("jobs", options.jobs);
  options.bank_images = flags.count("bank_images", options.bank_images);
  if (flags.has("cell")) options.cell = whole_number("cell", flags.get("cell"));
  return options;
}

}  // namespace

int reproduce(const Arguments& arguments) {
  Flags flags(
      "zsq reproduce TABLE --model FILE -o FOLDER",
      "Runs a table, one `zsq quantize` per row and seed, and writes table.md and table.json.\n"
      "TABLE: ablation, or a folder in which every *.yaml is a row. What is finished is kept:\n"
      "the same command goes on with what is missing.");
  declare(flags);
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  const ReproduceOptions options = options_of(flags);
  ReproduceReport report;
  if (flags.on("list")) {
    report = list_cells(options);
  } else {
    Console console(flags);
    report = zsq::reproduce(options, &console);
  }
  if (json)
    std::cout << to_json(report) << "\n";
  else if (flags.on("list"))
    print_list(report);
  else
    std::cout << to_markdown(report);
  return 0;
}

}  // namespace zsq::cli
