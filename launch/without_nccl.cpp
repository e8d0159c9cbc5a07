// SPDX-License-Identifier: Apache-2.0
// In place of launch/nccl.cpp in a program that is built without CUDA or without nccl.h.
#include "core/error.h"
#include "launch/nccl.h"

namespace zsq::launch {

struct Nccl::State {};

Nccl::Nccl(int, int, at::Device, const FromFirst&) {
  throw Error(ErrorCode::usage,
              "several ranks on GPUs need NCCL, and this program is built without it (no CUDA, or "
              "no nccl.h beside the toolkit's headers); --device cpu needs none");
}
Nccl::~Nccl() = default;
void Nccl::all_reduce_sum(const at::Tensor&) const {}
void Nccl::broadcast(const at::Tensor&, int) const {}

}  // namespace zsq::launch
