// SPDX-License-Identifier: Apache-2.0
#include "recipes/recipe.h"

#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void recipe(File file) { load_recipe(file.string()); }

}  // namespace zsq::fuzz
