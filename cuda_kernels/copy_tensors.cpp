// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/copy_tensors.h"

#include "cuda_kernels/checks.h"
#include "cuda_kernels/copy_tensors_implementations.h"
#include "cuda_kernels/cuda_scope.h"

namespace zsq::cuda_kernels {
namespace {

constexpr const char* kOp = "copy_tensors_";

std::vector<BytesCopy> copies_of(const std::vector<at::Tensor>& targets,
                                 const std::vector<at::Tensor>& sources) {
  if (targets.size() != sources.size())
    fail(kOp, "sources", std::to_string(sources.size()) + " tensors",
         std::to_string(targets.size()) + ", as targets");
  std::vector<BytesCopy> copies;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const at::Tensor &to = targets[i], &from = sources[i];
    if (to.device() != targets[0].device() || from.device() != to.device() ||
        from.scalar_type() != to.scalar_type() || from.sizes() != to.sizes() ||
        from.strides() != to.strides() || !to.is_non_overlapping_and_dense())
      fail(kOp, "source", describe(from), "a dense tensor like its target, " + describe(to));
    if (to.numel() > 0)
      copies.push_back(
          {from.const_data_ptr(), to.mutable_data_ptr(), static_cast<std::int64_t>(to.nbytes())});
  }
  return copies;
}

void copy(const bool* flag, const std::vector<at::Tensor>& targets,
          const std::vector<at::Tensor>& sources) {
  const std::vector<BytesCopy> copies = copies_of(targets, sources);
  if (copies.empty()) return;
  if (targets[0].is_cuda()) {
    const CudaScope cuda(kOp, targets[0].device());
    if constexpr (kHasCuda) copy_bytes_cuda(copies, flag, cuda.stream());
  } else {
    copy_bytes_cpu(copies, flag);
  }
}

}  // namespace

void copy_tensors_(const std::vector<at::Tensor>& targets, const std::vector<at::Tensor>& sources) {
  copy(nullptr, targets, sources);
}

void copy_tensors_where_(const at::Tensor& flag, const std::vector<at::Tensor>& targets,
                         const std::vector<at::Tensor>& sources) {
  if (targets.empty()) return;
  if (!flag.defined() || flag.scalar_type() != at::kBool || flag.numel() != 1 ||
      flag.device() != targets[0].device())
    fail(kOp, "flag", describe(flag), "a bool on the device of the tensors");
  copy(flag.const_data_ptr<bool>(), targets, sources);
}

}  // namespace zsq::cuda_kernels
