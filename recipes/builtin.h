// SPDX-License-Identifier: Apache-2.0
// The YAML files of this folder, compiled in by CMake so that the program works anywhere.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace zsq::recipes {

const std::vector<std::pair<std::string_view, std::string_view>>& builtin_recipes();  // name, text

}  // namespace zsq::recipes
