// SPDX-License-Identifier: Apache-2.0
#include "formats/npy.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void npz(File file) { formats::read_npz(file); }

}  // namespace zsq::fuzz
