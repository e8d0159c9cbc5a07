// SPDX-License-Identifier: Apache-2.0
// The cells of a table: rows times seeds, each with its command, what it is of, and its result
// where that is there.
#pragma once
#include <string>
#include <vector>

#include "pipeline/tables/inputs.h"

namespace zsq::pipeline {

struct PlannedCell {
  ReproduceCell cell;
  std::string network;
  Recipe recipe;               // as the cell runs it
  std::string key;             // what its result is of: recipe, weights, data and versions
  std::filesystem::path bank;  // of images that it learns from; empty: none
  std::int64_t bank_images = 0;
};

// Rows that `options.rows` chooses; Error(usage) if there is none.
std::vector<TableRow> chosen_rows(const Table& table, const ReproduceOptions& options);

std::vector<PlannedCell> plan_cells(const Table& table, const ReproduceOptions& options,
                                    TableInputs& inputs);

// True where the folder is of just this cell, finished or not.
bool is_of(const PlannedCell& planned);
void mark(const PlannedCell& planned);  // makes it so

// Reads the result of a finished cell.
void read_result(PlannedCell& planned);

}  // namespace zsq::pipeline
