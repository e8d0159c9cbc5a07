// SPDX-License-Identifier: Apache-2.0
#include "core/seed.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace zsq {
namespace {

// Worked out apart from this code, from the published definitions of FNV-1a and SplitMix64: these
// values may never change, or old runs could not be repeated.
TEST(Seed, KnownValues) {
  EXPECT_EQ(stream_seed(0, "", 0), 0xa6bbc8dcbe30928cULL);
  EXPECT_EQ(stream_seed(42, "noise", 7), 0x58530430fd997e7aULL);
}

TEST(Seed, EveryArgumentCounts) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t run : {0, 1, 2})
    for (const char* stream : {"", "noise", "labels"})
      for (std::uint64_t step = 0; step < 100; ++step) seeds.insert(stream_seed(run, stream, step));
  EXPECT_EQ(seeds.size(), 3u * 3u * 100u);
}

}  // namespace
}  // namespace zsq
