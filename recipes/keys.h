// SPDX-License-Identifier: Apache-2.0
// Keys of settings, as finetune.iterations, and the values that they set.
#pragma once
#include <string>

#include "recipes/recipe.h"
#include "recipes/values.h"

namespace zsq::recipes {

bool is_setting(const std::string& key);
bool is_section(const std::string& key);  // "finetune", "quantize.weights"

// That there is no such key, and the nearest one.
std::string unknown_key_message(const std::string& key);

// Error(usage): `where`, the key, and why it does not take the value.
void set_value(Recipe& recipe, const std::string& key, const RawValue& raw,
               const std::string& where);

}  // namespace zsq::recipes
