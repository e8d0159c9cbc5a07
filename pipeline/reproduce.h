// SPDX-License-Identifier: Apache-2.0
// A table of runs: every row a recipe, every cell one row with one seed, run by `zsq quantize` in a
// process of its own, so that the command of a cell is all there is to it. Finished cells are kept:
// the same table may be run on until it is whole, or a cell at a time on many machines.
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
  std::string table = "ablation";  // built-in recipes "<table>/...", or a folder of *.yaml
  std::filesystem::path model;
  std::filesystem::path output;       // <row>/seed<n>/ for each cell, table.json, table.md
  std::filesystem::path program;      // zsq
  std::vector<std::string> settings;  // key=value, for every cell, after the row's own
  std::vector<std::string> training;  // key=value, only for rows that train
  std::vector<std::int64_t> seeds{0};
  std::vector<std::string> rows;     // of these names or numbers only; empty: all
  std::optional<std::int64_t> cell;  // only this one, as listed
  std::int64_t jobs = 1;             // cells side by side
  std::int64_t bank_images = 256;    // for rows that learn from an image bank, made once
};

struct ReproduceCell {
  std::int64_t number = 0, seed = 0;
  std::string row, about, folder;
  std::vector<std::string> command;
  bool finished = false;      // there is a result of just this command, recipe, model and version
  std::optional<int> failed;  // exit code, where it was run and did not finish
  // Of finished cells; per cent, nats per image, seconds.
  std::optional<double> top1, teacher_top1, agreement, divergence;  // as report.json
  std::optional<double> neutral_agreement, neutral_divergence;      // as pipeline/select.h
  std::int64_t iterations = 0;
  double seconds = 0;
};

struct ReproduceReport {
  std::string table, model, source_sha256;
  std::int64_t neutral_images = 0;
  std::vector<ReproduceCell> cells;  // row by row
};

// The cells of a table, and which are finished. Runs nothing.
ReproduceReport list_cells(const ReproduceOptions& options);

// Runs what is missing, then measures all finished cells on one neutral set of images and writes
// table.json and table.md. Error(internal) after that if a cell failed: it names the log.
ReproduceReport reproduce(const ReproduceOptions& options, Observer* observer = nullptr);

std::string to_json(const ReproduceReport& report);
std::string to_markdown(const ReproduceReport& report);

}  // namespace zsq
