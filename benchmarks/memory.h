// SPDX-License-Identifier: Apache-2.0
// How much memory something takes at most. CPU: resident memory of the whole process, after free
// heap memory was handed back to the system. CUDA: what tensors hold on the device.
#pragma once
#include <c10/core/Device.h>

#include <cstdint>

namespace zsq::benchmarks {

class PeakMemory {
 public:
  explicit PeakMemory(c10::Device device) : device_(device), before_(restart()) {}
  std::int64_t before() const { return before_; }  // when this was made
  std::int64_t restart() const;                    // forgets the peak; what is in use now
  std::int64_t peak() const;                       // since then

 private:
  c10::Device device_;
  std::int64_t before_;
};

}  // namespace zsq::benchmarks
