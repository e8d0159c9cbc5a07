// SPDX-License-Identifier: Apache-2.0
// Which instructions the processor has for products of 8-bit integers: runtimes choose their
// kernels by them, and kernels differ in results and speed.
#pragma once
#include <string>

namespace zsq::pipeline {

struct Processor {
  std::string name;          // "AMD EPYC 7B13"; empty if the system does not tell
  std::string instructions;  // "AVX2, no VNNI", "AVX-512 VNNI, AMX"; "aarch64": another machine
  // x86 without VNNI adds two 8-bit products in 16 bits, which may saturate.
  bool pairs_may_saturate = false;

  std::string in_words() const;  // "AMD EPYC 7B13; AVX2, no VNNI"
};

Processor this_processor();

// From the text of /proc/cpuinfo, of a machine as uname names it.
Processor parse_processor(const std::string& cpuinfo, const std::string& machine);

}  // namespace zsq::pipeline
