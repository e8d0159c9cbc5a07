// SPDX-License-Identifier: Apache-2.0
// Where weights and images of a table's rows are, and whether they are those that it names.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "pipeline/reproduce.h"
#include "recipes/recipe.h"
#include "recipes/table.h"

namespace zsq::pipeline {

struct RowInputs {
  std::filesystem::path model = {}, data = {};  // empty: not at hand
  std::string model_sha256 = {}, data_sha256 = {};
  std::vector<std::string> lacking = {};  // as of ReproduceCell
  std::string wrong = {};
};

class TableInputs {
 public:
  // Error(usage) for names that the table does not have.
  TableInputs(const Table& table, const ReproduceOptions& options);

  // Of a row's network; "": of rows that leave it open. Hashes what it finds, once.
  const RowInputs& of(const std::string& network);

  std::filesystem::path model_of(const std::string& network) const {
    return found_.at(network).model;
  }

  // Measures the accuracy in float under `recipe` and keeps it in the output folder;
  // Error(bad_input) says what was found, what the table needs and where that comes from. Nothing
  // where the network is open.
  void check(const std::string& network, const Recipe& recipe, Observer& observer);

 private:
  RowInputs find(const std::string& network) const;
  std::filesystem::path weights_of(const std::string& network) const;
  std::filesystem::path data_of(const std::string& network) const;

  const Table& table_;
  const ReproduceOptions& options_;
  std::map<std::string, std::filesystem::path> models_, data_;  // as given, by name; "": for any
  std::map<std::string, RowInputs> found_;
};

// SHA-256 of a file; of a folder, over the paths and sizes of what it holds.
std::string sha256_of_files(const std::filesystem::path& path);

}  // namespace zsq::pipeline
