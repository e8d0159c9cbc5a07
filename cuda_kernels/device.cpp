// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <filesystem>

#include "core/error.h"
#include "cuda_kernels/cuda_scope.h"

#ifdef ZSQ_HAS_CUDA
#include <cuda_runtime_api.h>
#endif

namespace zsq::cuda_kernels {
namespace {

// libtorch_cuda.so lies beside the libtorch_cpu.so that this process runs.
std::filesystem::path torch_cuda_library() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&at::get_num_threads), &info) || !info.dli_fname)
    throw Error(ErrorCode::internal, "load_cuda: cannot tell where libtorch_cpu.so lies");
  return std::filesystem::path(info.dli_fname).replace_filename("libtorch_cuda.so");
}

std::string reason_without_device() {
#ifdef ZSQ_HAS_CUDA
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    return std::string("no usable CUDA driver or device: ") + cudaGetErrorString(error);
  return count > 0 ? "" : "the CUDA driver finds no device";
#else
  return kBuiltWithoutCuda;
#endif
}

std::string reason_without_cuda() {
  std::string reason = reason_without_device();
  if (reason.empty() && !std::filesystem::exists(torch_cuda_library()))
    reason = "libtorch has no CUDA library: " + torch_cuda_library().string() + " is missing";
  return reason;
}

}  // namespace

bool cuda_available(std::string* why) {
  const std::string reason = reason_without_cuda();
  if (why) *why = reason;
  return reason.empty();
}

void load_cuda() {
  std::string why;
  if (!cuda_available(&why))
    throw Error(ErrorCode::usage, "CUDA cannot be used: " + why + "; --device cpu needs none");
  if (!dlopen(torch_cuda_library().c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw Error(
        ErrorCode::usage,
        std::string("CUDA cannot be used: libtorch's CUDA library does not load: ") + dlerror());
  if (!at::hasCUDA())
    throw Error(ErrorCode::usage,
                "CUDA cannot be used: this process asked libtorch about CUDA, as at::manual_seed() "
                "does, before its CUDA library was loaded; link libtorch_cuda, or call zsq first");
}

}  // namespace zsq::cuda_kernels
