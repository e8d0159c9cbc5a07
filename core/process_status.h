// SPDX-License-Identifier: Apache-2.0
// What the system says about this process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace zsq {

// A line of /proc/self/status, "VmHWM:   12345 kB", in bytes. Nothing where the system tells no
// such number.
std::optional<std::int64_t> status_bytes(const std::string& key);

}  // namespace zsq
