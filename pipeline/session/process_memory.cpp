// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/process_memory.h"

#include <ATen/Context.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "core/process_status.h"

namespace zsq {
namespace {

double of_the_machine() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Set aside and hardly used later: oneDNN takes a quarter of a MiB for the code of each operator.
constexpr double kUnusedLater = 512 << 20;

}  // namespace

double bytes_of(const Budget& limit) {
  return limit.percent ? limit.amount / 100 * of_the_machine() : limit.amount;
}

// What the system can limit is the memory that is set aside, of which a process uses a part only.
void limit_process_memory(const Budget& limit) {
  const double bytes = bytes_of(limit);
  if (bytes <= 0 || at::hasCUDA()) return;
  const auto in_use = [](const char* key) { return status_bytes(key).value_or(0); };
  const auto unused = static_cast<double>(in_use("VmData") - in_use("RssAnon"));
  rlimit now{};
  ::getrlimit(RLIMIT_DATA, &now);
  now.rlim_cur = std::min<rlim_t>(now.rlim_max, static_cast<rlim_t>(bytes + unused + kUnusedLater));
  ::setrlimit(RLIMIT_DATA, &now);
}

}  // namespace zsq
