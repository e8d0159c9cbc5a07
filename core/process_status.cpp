// SPDX-License-Identifier: Apache-2.0
#include "core/process_status.h"

#include <fstream>

namespace zsq {

std::optional<std::int64_t> status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == key + ":" && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace zsq
