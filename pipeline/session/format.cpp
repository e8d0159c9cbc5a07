// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/format.h"

#include <cstdarg>
#include <cstdio>

namespace zsq::pipeline {

std::string format(const char* pattern, ...) {
  char buffer[320];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, values);
  va_end(values);
  return buffer;
}

std::string bytes_in_words(double bytes) {
  return bytes < 1e6 ? format("%.1f kB", bytes / 1e3) : format("%.2f MB", bytes / 1e6);
}

}  // namespace zsq::pipeline
