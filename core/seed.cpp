// SPDX-License-Identifier: Apache-2.0
#include "core/seed.h"

namespace zsq {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view stream, std::uint64_t step) {
  std::uint64_t name = 0xcbf29ce484222325ULL;
  for (unsigned char byte : stream) name = (name ^ byte) * 0x100000001b3ULL;
  return mix(mix(mix(run_seed) ^ name) ^ step);
}

}  // namespace zsq
