// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/cost_table.h"

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/nearest_name.h"
#include "formats/atomic_file.h"
#include "recipes/values.h"

namespace zsq::pipeline {
namespace {

constexpr const char* kHeader = "layer,bits,cost";
constexpr std::int64_t kFewest = 2, kMost = 8;  // bits

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::bad_input, message); }

}  // namespace

CostTable::CostTable(const std::filesystem::path& path, const std::vector<std::string>& layers)
    : path_(path.string()) {
  const auto bytes = formats::read_file(path);
  sha256_ = formats::sha256(bytes);
  std::istringstream text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::string line;
  bool header = false;
  for (std::int64_t number = 1; std::getline(text, line); ++number) {
    line = trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    try {
      if (header) {
        add_line(line, layers);
      } else if (line != kHeader) {
        refuse("the first line is '" + line + "'; expected '" + kHeader + "'");
      }
      header = true;
    } catch (const Error& error) {
      throw Error(ErrorCode::bad_input, "mixed.cost_table: " + path_ + ":" +
                                            std::to_string(number) + ": " + error.what());
    }
  }
  if (costs_.empty())
    refuse("mixed.cost_table: " + path_ + " has no costs; expected the line '" + kHeader +
           "' and a line like 'conv1,4,12.5' for each layer and number of bits");
}

void CostTable::add_line(const std::string& line, const std::vector<std::string>& layers) {
  // A name may contain commas.
  const auto last = line.rfind(',');
  const auto middle = last == std::string::npos || last == 0 ? last : line.rfind(',', last - 1);
  if (last == std::string::npos || last == 0 || middle == std::string::npos)
    refuse("'" + line + "' was found; expected a layer, bits and a cost, as in 'conv1,4,12.5'");
  const std::string layer = trimmed(line.substr(0, middle)),
                    bits_text = trimmed(line.substr(middle + 1, last - middle - 1)),
                    cost_text = trimmed(line.substr(last + 1));
  if (std::find(layers.begin(), layers.end(), layer) == layers.end())
    refuse(unknown_name_message("convolution or linear layer of this network", layer, layers));
  const std::int64_t bits = recipes::parse_integer(bits_text);
  if (bits < kFewest || bits > kMost)
    refuse("'" + bits_text + "' bits were found; expected a whole number from 2 to 8");
  const double cost = recipes::parse_number(cost_text);
  if (cost < 0) refuse("the cost '" + cost_text + "' was found; expected a number of 0 or more");
  if (!costs_.emplace(std::pair(layer, bits), cost).second)
    refuse("a second cost of " + layer + " at " + bits_text +
           " bits was found; delete one of them");
}

double CostTable::cost(const std::string& layer, std::int64_t bits) const {
  const auto found = costs_.find({layer, bits});
  if (found != costs_.end()) return found->second;
  refuse("mixed.cost_table: " + path_ + " has no cost of the layer " + layer + " at " +
         std::to_string(bits) + " bits, which it can get; add a line '" + layer + "," +
         std::to_string(bits) +
         ",COST' (0 where it costs nothing), or narrow mixed.min_bits to mixed.max_bits");
}

}  // namespace zsq::pipeline
