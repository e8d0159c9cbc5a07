// SPDX-License-Identifier: Apache-2.0
#include "pipeline/reproduce.h"

#include <algorithm>
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

const char* state_of(const ReproduceCell& cell) {
  if (cell.finished) return "finished";
  if (!cell.lacking.empty()) return "lacks inputs";
  return cell.wrong.empty() ? "to run" : "other weights";
}

void print_list(const ReproduceReport& report) {
  std::size_t width = 20;
  for (const ReproduceCell& cell : report.cells) width = std::max(width, cell.row.size());
  std::printf("%4s  %-*s  %-6s %5s  %8s  %s\n", "cell", static_cast<int>(width), "row", "bits",
              "seed", "paper, %", "state");
  std::vector<std::string> needs;
  for (const ReproduceCell& cell : report.cells) {
    char published[16] = "";
    if (cell.published) std::snprintf(published, sizeof published, "%.2f", *cell.published);
    std::printf("%4lld  %-*s  %-6s %5lld  %8s  %s\n", static_cast<long long>(cell.number),
                static_cast<int>(width), cell.row.c_str(), cell.scheme.c_str(),
                static_cast<long long>(cell.seed), published, state_of(cell));
    std::vector<std::string> of_cell = cell.lacking;
    if (!cell.wrong.empty()) of_cell.push_back(cell.wrong);
    for (const std::string& need : of_cell)
      if (std::find(needs.begin(), needs.end(), need) == needs.end()) needs.push_back(need);
  }
  if (!needs.empty()) std::printf("\nNeeded:\n");
  for (const std::string& need : needs) std::printf("  %s\n", need.c_str());
}

int print_tables() {
  for (const TableSummary& table : list_tables())
    std::printf("%-22s %3lld rows  %s\n", table.name.c_str(), static_cast<long long>(table.rows),
                table.about.c_str());
  return 0;
}

void declare(Flags& flags) {
  flags.positional("table", 1);
  flags.texts("model", "[NETWORK=]FILE", "weights of a network of the table, or of all rows");
  flags.text("weights_dir", "FOLDER", "where the table's weights lie, under their own names");
  flags.texts("data", "[NAME=]PATH", "real images to measure with, by the table's name of the set");
  flags.text("eval_data", "PATH", "the same, for rows that share a set");
  flags.toggle("other_inputs",
               "run on weights and images that are not the table's too; the reasons say so");
  flags.text("output_path,o", "FOLDER", "where cells and table go");
  flags.text("scheme", "WxAy", "bits of weights and activations of every row (W4A4, 4w4a)");
  flags.text("seeds", "N,N,...", "one cell per row and seed (default: the table's)");
  flags.text("rows", "NAME,...", "only rows whose names start so");
  flags.text("jobs", "N",
             "cells side by side (default: 1); OMP_NUM_THREADS or --threads sets "
             "the threads of each");
  flags.text("iterations", "N", "of rows that train (default: their recipes')");
  flags.text("time_budget", "TIME", "of each cell that trains (600, 10min, 2h)");
  flags.text("bank_images", "N",
             "images of the bank, for rows that learn from one (default: the row's, else 256)");
  flags.toggle("list", "the cells, what they lack and which are finished; runs nothing");
  flags.text("cell", "K", "only this cell of --list, as one job of an array");
  flags.preprocessing();
  flags.common();
}

ReproduceOptions options_of(const Flags& flags) {
  ReproduceOptions options;
  options.table = flags.required("table", "TABLE");
  options.models = flags.list("model");
  options.weights_dir = flags.get("weights_dir");
  options.data = flags.list("data");
  if (flags.has("eval_data")) options.data.push_back(flags.get("eval_data"));
  options.other_inputs = flags.on("other_inputs");
  options.output = flags.get("output_path");
  options.program = std::filesystem::read_symlink("/proc/self/exe");
  options.settings = flags.overrides();
  if (flags.has("iterations"))
    options.training.push_back("finetune.iterations=" + flags.get("iterations"));
  if (flags.has("time_budget"))
    options.training.push_back("process.time_budget=" + flags.get("time_budget"));
  if (flags.has("seeds"))
    for (const std::string& seed : split(flags.get("seeds")))
      options.seeds.push_back(whole_number("seeds", seed));
  options.rows = split(flags.get("rows"));
  options.jobs = flags.count("jobs", options.jobs);
  if (flags.has("bank_images")) options.bank_images = flags.count("bank_images", 1);
  if (flags.has("cell")) options.cell = whole_number("cell", flags.get("cell"));
  return options;
}

}  // namespace

int reproduce(const Arguments& arguments) {
  Flags flags(
      "zsq reproduce [TABLE] [--weights_dir FOLDER] [--data NAME=PATH] -o FOLDER",
      "Runs a published table, one `zsq quantize` per row and seed, and writes table.md, "
      "table.csv,\n"
      "table.json and table.tex with the paper's value, ours, the gap and its reason. TABLE: a "
      "name\n"
      "(without TABLE they are listed), a file like those, or a folder in which every *.yaml is a\n"
      "row. Weights and data are checked first; what is finished is kept: the same command goes "
      "on\n"
      "with what is missing.");
  declare(flags);
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  if (!flags.has("table")) return print_tables();
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
