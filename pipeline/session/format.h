// SPDX-License-Identifier: Apache-2.0
// Numbers as words.
#pragma once
#include <string>

namespace zsq::pipeline {

// As printf.
__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...);
std::string bytes_in_words(double bytes);  // "12.3 kB", "1.20 MB"

}  // namespace zsq::pipeline
