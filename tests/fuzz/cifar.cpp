// SPDX-License-Identifier: Apache-2.0
#include "eval/preprocessing.h"
#include "eval/sources.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void cifar(File file) {
  const auto source = eval::open_cifar(file, eval::resolve({.preset = "cifar10"}, {32, 32}));
  source->load(source->size() - 1, 1);
}

}  // namespace zsq::fuzz
