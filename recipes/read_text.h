// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace zsq::recipes {

// A whole text file; nothing if it cannot be opened.
inline std::optional<std::string> read_text(const std::filesystem::path& path) {
  const std::ifstream stream(path);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace zsq::recipes
