// SPDX-License-Identifier: Apache-2.0
// A table of runs: every row a recipe, every cell one row with one seed, run by `zsq quantize` in a
// process of its own, so that the command of a cell is all there is to it. What a row needs is
// checked before anything runs. Finished cells are kept: the same table may be run on until it is
// whole, or a cell at a time on many machines.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"

namespace zsq {

struct ReproduceOptions {
  std::string table = "ablation";  // see recipes/table.h
  // Weights and images: PATH or NAME=PATH, where the table names networks and data sets. Weights
  // that are not given so are looked for in weights_dir, by the names of their files.
  std::vector<std::string> models, data;
  std::filesystem::path weights_dir;
  bool other_inputs = false;          // run on others than the table's too; its reasons say so
  std::filesystem::path output;       // <row>/seed<n>/ for each cell, table.{md,csv,json,tex}
  std::filesystem::path program;      // zsq
  std::vector<std::string> settings;  // key=value, for every cell, after the row's own
  std::vector<std::string> training;  // key=value, only for rows that train
  std::vector<std::int64_t> seeds;    // empty: the table's
  std::vector<std::string> rows;      // only those whose names start so; empty: all
  std::optional<std::int64_t> cell;   // only this one, as listed
  std::int64_t jobs = 1;              // cells side by side
  std::optional<std::int64_t> bank_images;  // of image banks; the row's, else 256
};

struct ReproduceCell {
  std::int64_t number = 0, seed = 0;
  std::string row, about, network, scheme, folder;
  std::vector<std::string> command;
  std::vector<std::string> lacking;  // weights or data not at hand, and where they come from
  std::string wrong;                 // weights that are not the table's
  bool finished = false;      // there is a result of just this command, recipe, inputs and versions
  std::optional<int> failed;  // exit code, where it was run and did not finish
  // What was published, in per cent, and in what a run differs from that.
  std::optional<double> published, published_teacher;
  std::int64_t published_images = 0;
  std::vector<std::string> changed;  // settings of this run
  std::string note;                  // what differs in every run
  // Of finished cells; per cent, nats per image, seconds.
  std::optional<double> top1, teacher_top1, agreement, divergence;  // as report.json
  std::optional<double> neutral_agreement, neutral_divergence;      // as pipeline/select.h
  std::int64_t iterations = 0, images = 0;
  double seconds = 0;
};

struct ReproduceReport {
  std::string table, about, source, model;
  std::int64_t version = 1;
  double tolerance = 0;
  std::int64_t neutral_images = 0;
  std::vector<ReproduceCell> cells;  // row by row
};

// The cells of a table, what they lack and which are finished. Runs nothing.
ReproduceReport list_cells(const ReproduceOptions& options);

// Checks weights and data of what is missing (the accuracy in float is measured, once), runs it,
// and writes the table. Cells that lack weights or data are left out. Error(bad_input) where these
// are not the table's, or where nothing can be run. Error(internal) at the end if a cell failed: it
// names the log.
ReproduceReport reproduce(const ReproduceOptions& options, Observer* observer = nullptr);

std::string to_json(const ReproduceReport& report);
std::string to_markdown(const ReproduceReport& report);
std::string to_csv(const ReproduceReport& report);
std::string to_latex(const ReproduceReport& report);

struct TableSummary {
  std::string name, about, source;
  std::int64_t rows = 0;
};
std::vector<TableSummary> list_tables();  // built in

}  // namespace zsq
