// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.h"

#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void safetensors(File file) { formats::read_safetensors(file); }

}  // namespace zsq::fuzz
