// SPDX-License-Identifier: Apache-2.0
#include "eval/image.h"

#include "formats/atomic_file.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void image(File file) { eval::decode_image(formats::read_file(file), file.string()); }

}  // namespace zsq::fuzz
