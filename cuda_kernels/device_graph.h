// SPDX-License-Identifier: Apache-2.0
// Work that is launched once, recorded, and then launched again whole: one call in the place of
// some thousands, each of which costs the host microseconds (CUDA graphs).
//
// A recording repeats the very launches: same kernels, same addresses, same scalars. So whatever is
// to differ from one replay to the next has to lie in tensors that outlive the recording and are
// written in place before a replay; tensors that the body makes keep their addresses and are
// overwritten by the next replay; and the body may not ask the device for a value.
#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace zsq::cuda_kernels {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Runs the body as it is, the way it will be recorded. Libraries set themselves up during the
  // first runs, in ways that cannot be recorded: to be called a few times before record().
  virtual void warm_up(const std::function<void()>& body) = 0;
  // Records in the place of what was recorded before; runs nothing. Throws what the body throws,
  // and Error(internal) if the body did what cannot be recorded (waited for the device, copied
  // from pageable memory); then nothing is recorded and nothing on the device has changed.
  virtual void record(const std::function<void()>& body) = 0;
  // Launches the recording on the current stream and returns at once.
  virtual void replay() = 0;
};

// For a CUDA device, without an index the current one; load_cuda() has run.
std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device);

}  // namespace zsq::cuda_kernels
