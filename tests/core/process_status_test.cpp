// SPDX-License-Identifier: Apache-2.0
#include "core/process_status.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace zsq {
namespace {

TEST(ProcessStatus, TellsTheSizeOfTheProcessInBytes) {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto bytes = status_bytes("VmSize");
  ASSERT_TRUE(bytes);
  EXPECT_NEAR(static_cast<double>(*bytes), static_cast<double>(pages * ::sysconf(_SC_PAGESIZE)),
              1 << 24);
}

TEST(ProcessStatus, ALineThatIsNotThereIsNothing) {
  EXPECT_FALSE(status_bytes("VmNone"));
  EXPECT_FALSE(status_bytes("Vm"));
}

}  // namespace
}  // namespace zsq
