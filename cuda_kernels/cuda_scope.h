// SPDX-License-Identifier: Apache-2.0
// What an op's CUDA branch needs: the tensor's device made current, and libtorch's current stream
// on it, both through c10's device-neutral interface, so that no CUDA library of libtorch is
// linked.
#pragma once
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <string>

#include "core/error.h"
#include "cuda_kernels/cuda_stream.h"

namespace zsq::cuda_kernels {

constexpr const char* kBuiltWithoutCuda = "built without CUDA (ZSQ_CUDA=OFF)";

// A program may be made of parts with and without CUDA, tests and library for instance: each has a
// scope of its own.
#ifdef ZSQ_HAS_CUDA
inline namespace with_cuda {
constexpr bool kHasCuda = true;
#else
inline namespace without_cuda {
constexpr bool kHasCuda = false;
#endif

class CudaScope {
 public:
  CudaScope(const char* op, c10::Device device) : guard_(checked(op, device)) {}
  cudaStream_t stream() const {
    const c10::impl::VirtualGuardImpl impl(guard_.current_device().type());
    return static_cast<cudaStream_t>(impl.getStream(guard_.current_device()).native_handle());
  }

 private:
  static c10::Device checked(const char* op, c10::Device device) {
    if (!kHasCuda) throw Error(ErrorCode::internal, std::string(op) + ": " + kBuiltWithoutCuda);
    return device;
  }
  c10::DeviceGuard guard_;
};

}  // namespace with_cuda or without_cuda
}  // namespace zsq::cuda_kernels
