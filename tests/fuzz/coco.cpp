// SPDX-License-Identifier: Apache-2.0
#include "eval/coco_file.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void coco(File file) { eval::read_coco(file); }

}  // namespace zsq::fuzz
