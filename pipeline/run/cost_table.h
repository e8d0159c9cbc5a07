// SPDX-License-Identifier: Apache-2.0
// What layers cost on an accelerator, as a model of it has written it down (mixed.cost_table).
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zsq::pipeline {

// A CSV file: the line "layer,bits,cost", then a line per layer and number of bits of its weights,
//   layer1.0.conv1,4,12.5
// bits 2 to 8, cost at least 0, in any unit that adds up over layers (cycles, microseconds,
// joules). Empty lines and lines that begin with # do not count.
class CostTable {
 public:
  // `layers`: those of the network. Error(bad_input) names the file, the line, what was found and
  // what was expected: another header, a line of other fields, a layer that the network does not
  // have, bits or a cost out of range, the same layer and bits twice.
  CostTable(const std::filesystem::path& path, const std::vector<std::string>& layers);

  // Error(bad_input) with the line that is missing.
  double cost(const std::string& layer, std::int64_t bits) const;

  const std::string& path() const { return path_; }
  const std::string& sha256() const { return sha256_; }

 private:
  void add_line(const std::string& line, const std::vector<std::string>& layers);

  std::string path_, sha256_;
  std::map<std::pair<std::string, std::int64_t>, double> costs_;
};

}  // namespace zsq::pipeline
