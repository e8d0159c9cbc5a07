// SPDX-License-Identifier: Apache-2.0
// Every random draw comes from a generator seeded by hash(run seed, stream name, step), so a draw
// depends on neither the draws before it nor the thread that makes it; a resumed run repeats it.
#pragma once
#include <cstdint>
#include <string_view>

namespace zsq {

// 64-bit hash (FNV-1a over the name, SplitMix64 finaliser) of the three; stable across releases.
std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view stream, std::uint64_t step);

}  // namespace zsq
