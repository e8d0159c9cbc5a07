// SPDX-License-Identifier: Apache-2.0
// The YAML files of this folder, compiled in by CMake so that the program works anywhere.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace zsq::recipes {

using NamedTexts = std::vector<std::pair<std::string_view, std::string_view>>;  // name, text

const NamedTexts& builtin_recipes();
const NamedTexts& builtin_tables();  // tables/*.yaml
std::string_view builtin_inputs();   // inputs.yaml: networks and data sets that tables name

}  // namespace zsq::recipes
