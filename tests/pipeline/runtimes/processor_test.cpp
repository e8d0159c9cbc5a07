// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/processor.h"

#include <gtest/gtest.h>

namespace zsq::pipeline {
namespace {

std::string instructions(const std::string& flags) {
  return parse_processor("processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu " + flags + "\n",
                         "x86_64")
      .instructions;
}

TEST(Processor, NamesWhatMultipliesBytes) {
  EXPECT_EQ(instructions("avx avx2 fma"), "AVX2, no VNNI");
  EXPECT_EQ(instructions("avx avx2 avx512f avx512bw"), "AVX-512, no VNNI");
  EXPECT_EQ(instructions("avx2 avx512bw avx512_vnni"), "AVX-512 VNNI");
  EXPECT_EQ(instructions("avx2 avx_vnni"), "AVX2 with AVX-VNNI");
  EXPECT_EQ(instructions("avx2 avx512bw avx512_vnni avx_vnni amx_tile amx_int8"),
            "AVX-512 VNNI, AVX-VNNI, AMX");
  EXPECT_EQ(instructions("sse4_2"), "SSE, no VNNI");
}

TEST(Processor, SaysWhetherPairsOfProductsMaySaturate) {
  const auto saturates = [](const char* flags) {
    return parse_processor(std::string("flags: ") + flags, "x86_64").pairs_may_saturate;
  };
  EXPECT_TRUE(saturates("avx2"));
  EXPECT_TRUE(saturates("avx2 avx512bw"));
  EXPECT_FALSE(saturates("avx2 avx_vnni"));
  EXPECT_FALSE(saturates("avx512_vnni"));
}

TEST(Processor, OfAnotherMachineItsKind) {
  const Processor arm = parse_processor("processor : 0\nFeatures : asimddp\n", "aarch64");
  EXPECT_EQ(arm.in_words(), "aarch64");
  EXPECT_FALSE(arm.pairs_may_saturate);
  EXPECT_EQ(parse_processor("model name : A CPU\nflags : avx2", "x86_64").in_words(),
            "A CPU; AVX2, no VNNI");
  EXPECT_FALSE(this_processor().instructions.empty());
}

}  // namespace
}  // namespace zsq::pipeline
