// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace zsq::recipes {

// A byte of YAML becomes more than a hundred in memory; the built-in files have less than 10 kB.
inline constexpr std::uintmax_t kMaxYamlBytes = 1 << 20;

// A whole text file; nothing if it cannot be opened or is longer than kMaxYamlBytes.
inline std::optional<std::string> read_text(const std::filesystem::path& path) {
  const std::ifstream stream(path);
  std::error_code unreachable;
  const auto bytes = std::filesystem::file_size(path, unreachable);
  if (!stream || unreachable || bytes > kMaxYamlBytes) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace zsq::recipes
