// SPDX-License-Identifier: Apache-2.0
// A table of runs, as a publication prints one: what was published, by which setting, on which
// weights and data. YAML in, plain structs out; torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zsq {

// A file that holds a network's weights, and where to get it.
struct WeightsFile {
  std::string name, from;
  std::string sha256, sha1;  // empty: not known, and the accuracy in float tells
};

struct TableNetwork {
  std::string about, data_set;
  std::string arch, preset;        // model.arch and data.preset
  double top1 = 0;                 // in float on the data set, per cent
  std::vector<WeightsFile> files;  // any one of them
};

struct TableDataSet {
  std::string about, from;
  std::int64_t images = 0;
};

struct TableRow {
  std::string name = {}, about = {}, recipe = {};
  std::string network = {};                // empty: any, named on the command line
  std::vector<std::string> settings = {};  // key=value, after the recipe
  std::optional<double> published = {};    // top-1, per cent
  std::string note = {};                   // in what the engine's setting differs from it
  std::int64_t bank_images = 0;            // where the recipe learns from a bank; 0: not fixed
};

struct Table {
  std::string name, about, source;
  std::int64_t version = 1;  // a new one makes finished cells void
  double tolerance = 0.5;    // points of top-1 by which a repetition may differ
  std::vector<std::int64_t> seeds{0};
  std::vector<TableRow> rows;
  // By name: the built-in ones and the table's own.
  std::map<std::string, TableNetwork> networks;
  std::map<std::string, TableDataSet> data_sets;
};

// `name`: a built-in table; a *.yaml file; or a folder in which every *.yaml is a recipe and a row
// of its own. Error(usage) names file, line, key and the nearest known one. Every row's recipe
// loads.
Table load_table(const std::string& name);

std::vector<std::string> table_names();  // built in, sorted

}  // namespace zsq
