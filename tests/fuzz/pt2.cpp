// SPDX-License-Identifier: Apache-2.0
#include "formats/exported_program.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void pt2(File file) { formats::read_exported_program(file); }

}  // namespace zsq::fuzz
