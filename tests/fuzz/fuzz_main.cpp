// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls; compiled once per target.
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zsq::fuzz::feed(zsq::fuzz::ZSQ_FUZZ_TARGET, std::as_bytes(std::span(data, size)));
  return 0;
}
