// SPDX-License-Identifier: Apache-2.0
// A CUDA device for libtorch that is none: a program that links device.cpp has tensors of device
// cuda:0 whose memory is the host's. Operators of libtorch run in their CPU implementation, kernels
// of cuda_kernels/ as the fibers of grid.h, so that code takes the paths that it takes on a GPU.
// What would make the host wait for the device is counted. Streams are names: everything runs in
// order.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace zsq::test {

// How often the host would have waited for the device since reset_waits(), by cause: an operator
// that reads numbers back ("_local_scalar_dense", "nonzero", ...), "copy to the CPU", "copy from
// the CPU" (from pageable memory, without non_blocking), "synchronize".
std::map<std::string, std::int64_t> waits();
void reset_waits();
// As text: "2 x nonzero, 1 x copy to the CPU"; empty for none.
std::string describe_waits();

// While it lives, waiting throws, as it does while a stream is recorded.
class NoWaiting {
 public:
  NoWaiting();
  ~NoWaiting();
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;
};

// Blocks of device memory that were asked for since the program began.
std::int64_t device_allocations();

}  // namespace zsq::test
