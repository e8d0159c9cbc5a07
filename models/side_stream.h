// SPDX-License-Identifier: Apache-2.0
// A stream of a CUDA device beside the current one, so that two pieces of work that do not need
// each other's results run at once. The device keeps the order between the two; the host does not
// wait. Through c10's device-neutral interface: no CUDA library is linked.
#pragma once
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace zsq::models {

class SideStream {
 public:
  // From libtorch's pool. `device` without an index is the current one.
  explicit SideStream(c10::Device device)
      : impl_(device.type()),
        stream_(impl_.getStreamFromGlobalPool(device.has_index() ? device : impl_.getDevice())) {}

  // While the result lives, it is the current stream. What is launched meanwhile waits for nothing
  // on other streams unless wait_for_current() came before.
  [[nodiscard]] c10::StreamGuard enter() const { return c10::StreamGuard(stream_); }
  // What it is given from now on runs after all that the current stream has been given.
  void wait_for_current() const { after(stream_, current()); }
  // What the current stream is given from now on runs after all that this one has been given.
  void join() const { after(current(), stream_); }

  c10::Stream current() const { return impl_.getStream(stream_.device()); }

 private:
  void after(const c10::Stream& later, const c10::Stream& earlier) const {
    c10::Event event(stream_.device_type());
    event.record(earlier);
    event.block(later);
  }

  c10::impl::VirtualGuardImpl impl_;
  c10::Stream stream_;
};

}  // namespace zsq::models
