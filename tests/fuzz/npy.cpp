// SPDX-License-Identifier: Apache-2.0
#include "formats/npy.h"

#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void npy(File file) { formats::read_npy(file); }

}  // namespace zsq::fuzz
