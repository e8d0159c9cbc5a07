// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/processor.h"

#include <sys/utsname.h>

#include <fstream>
#include <set>
#include <sstream>

namespace zsq::pipeline {
namespace {

// What follows "key : " in its first line.
std::string value_of(const std::string& cpuinfo, const std::string& key) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string x86_instructions(const std::set<std::string>& flags) {
  const bool vnni512 = flags.contains("avx512_vnni"), vnni256 = flags.contains("avx_vnni");
  std::string words = vnni512                      ? "AVX-512 VNNI"
                      : flags.contains("avx512bw") ? "AVX-512"
                      : flags.contains("avx2")     ? "AVX2"
                      : flags.contains("avx")      ? "AVX"
                                                   : "SSE";
  if (vnni256) words += vnni512 ? ", AVX-VNNI" : " with AVX-VNNI";
  if (flags.contains("amx_int8")) words += ", AMX";
  if (!vnni512 && !vnni256) words += ", no VNNI";
  return words;
}

}  // namespace

std::string Processor::in_words() const {
  return name.empty() ? instructions : name + "; " + instructions;
}

Processor parse_processor(const std::string& cpuinfo, const std::string& machine) {
  if (machine != "x86_64") return {value_of(cpuinfo, "model name"), machine, false};
  std::istringstream words(value_of(cpuinfo, "flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  return {value_of(cpuinfo, "model name"), x86_instructions(flags),
          !flags.contains("avx512_vnni") && !flags.contains("avx_vnni")};
}

Processor this_processor() {
  utsname system{};
  const std::string machine = ::uname(&system) == 0 ? system.machine : "";
  std::ostringstream text;
  text << std::ifstream("/proc/cpuinfo").rdbuf();
  return parse_processor(text.str(), machine);
}

}  // namespace zsq::pipeline
