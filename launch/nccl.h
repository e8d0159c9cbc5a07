// SPDX-License-Identifier: Apache-2.0
// Collectives of tensors on GPUs, one GPU per rank, on libtorch's current stream. NCCL is the one
// that libtorch's CUDA library has loaded.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace zsq::launch {

class Nccl {
 public:
  // Writes on all ranks what rank 0 has in these bytes.
  using FromFirst = std::function<void(char* data, int bytes)>;

  // All ranks together. Error(usage) if this program is built without NCCL; Error(internal) with
  // NCCL's words, as if two ranks have one GPU.
  Nccl(int rank, int size, at::Device device, const FromFirst& from_first);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  void all_reduce_sum(const at::Tensor& tensor) const;
  void broadcast(const at::Tensor& tensor, int root) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zsq::launch
