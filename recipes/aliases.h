// SPDX-License-Identifier: Apache-2.0
// Former names of recipe keys, of their values and of built-in recipes. They are read until version
// 1.0, with a warning; nothing writes them.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace zsq::recipes {

struct Renamed {
  std::string_view before, now;
};
std::span<const Renamed> former_keys();
std::span<const Renamed> former_recipes();

// Each gives the name of today; what is no former name comes back unchanged.
std::string current_key(const std::string& key);
std::string current_value(const std::string& key, const std::string& value);
std::string current_recipe(const std::string& name);

// Whether `key` is the weight of the second of finetune.loss_terms, from the time before these had
// weights of their own.
bool is_feature_weight(const std::string& key);

// Whether `key` is a section that holds former keys alone, as "quantize.hessian".
bool is_former_section(const std::string& key);

}  // namespace zsq::recipes
