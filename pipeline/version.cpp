// SPDX-License-Identifier: Apache-2.0
#include "pipeline/version.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/version.h>

#include "cuda_kernels/device.h"

namespace zsq {
namespace {

// cuDNN belongs to libtorch's CUDA library, which only a machine with a GPU loads.
std::string cudnn_version() {
  std::string why;
  if (!cuda_kernels::cuda_available(&why)) return "none (" + why + ")";
  cuda_kernels::load_cuda();
  return std::to_string(at::detail::getCUDAHooks().versionCuDNN());
}

}  // namespace

std::string version() { return ZSQ_VERSION; }

std::string version_details() {
  return "zsq " ZSQ_VERSION "\nlibtorch " TORCH_VERSION "\nCUDA " ZSQ_CUDA_VERSION "\ncuDNN " +
         cudnn_version() + "\nOpenCV " ZSQ_OPENCV_VERSION "\ncompiler " ZSQ_COMPILER "\n";
}

}  // namespace zsq
