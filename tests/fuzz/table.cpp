// SPDX-License-Identifier: Apache-2.0
#include "recipes/table.h"

#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void table(File file) { load_table(file.string()); }

}  // namespace zsq::fuzz
