// SPDX-License-Identifier: Apache-2.0
#include "formats/pth.h"

#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void pth(File file) { formats::read_pth(file); }

}  // namespace zsq::fuzz
