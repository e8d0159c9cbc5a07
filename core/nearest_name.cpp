// SPDX-License-Identifier: Apache-2.0
#include "core/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace zsq {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::pair<bool, std::size_t> best_rank;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (3 * distance > std::max(name.size(), candidate.size())) continue;
    const std::pair rank(!candidate.starts_with(name), distance);
    if (best.empty() || rank < best_rank) {
      best = candidate;
      best_rank = rank;
    }
  }
  return best;
}

std::string unknown_name_message(std::string_view kind, std::string_view name,
                                 const std::vector<std::string>& known) {
  const bool vowel = kind.find_first_of("aeiou") == 0;
  std::string message =
      "'" + std::string(name) + "' is not " + (vowel ? "an " : "a ") + std::string(kind);
  const std::string near = nearest_name(name, known);
  message += near.empty() ? ". Known:" : "; did you mean '" + near + "'? Known:";
  for (std::size_t i = 0; i < known.size(); ++i) message += (i ? ", " : " ") + known[i];
  return message;
}

}  // namespace zsq
