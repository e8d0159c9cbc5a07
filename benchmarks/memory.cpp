// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>

#include <fstream>
#include <string>

#include "core/error.h"
#include "core/process_status.h"

namespace zsq::benchmarks {
namespace {

std::int64_t needed_bytes(const std::string& key) {
  if (const auto bytes = status_bytes(key)) return *bytes;
  throw Error(ErrorCode::internal, "/proc/self/status has no " + key + "; memory is read there");
}

c10::CachingAllocator::Stat device_bytes(c10::Device device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return c10::getDeviceAllocator(device.type())
      ->getDeviceStats(device.has_index() ? device.index() : c10::DeviceIndex{0})
      .allocated_bytes[kAll];
}

}  // namespace

std::int64_t PeakMemory::restart() const {
  if (!device_.is_cpu()) {
    c10::getDeviceAllocator(device_.type())
        ->resetPeakStats(device_.has_index() ? device_.index() : c10::DeviceIndex{0});
    return device_bytes(device_).current;
  }
  malloc_trim(0);
  // 5 resets the high-water mark. Where that is forbidden the mark is that of the process so far,
  // which is never too low.
  std::ofstream("/proc/self/clear_refs") << 5;
  return needed_bytes("VmRSS");
}

std::int64_t PeakMemory::peak() const {
  return device_.is_cpu() ? needed_bytes("VmHWM") : device_bytes(device_).peak;
}

}  // namespace zsq::benchmarks
