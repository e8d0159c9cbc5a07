// SPDX-License-Identifier: Apache-2.0
#include "models/load.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void model(File file) {
  models::LoadOptions options;
  options.image_size = {32, 32};  // for files that leave it open
  const auto loaded = models::load(file, options);
  models::inspect_batch_norm(loaded);
  models::multiply_accumulates(loaded);
}

}  // namespace zsq::fuzz
