// SPDX-License-Identifier: Apache-2.0
#include "launch/nccl.h"

#include <dlfcn.h>
#include <nccl.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "cuda_kernels/cuda_scope.h"

namespace zsq::launch {
namespace {

// Nothing links NCCL, as nothing links libtorch's CUDA library (cuda_kernels/device.h).
template <class Function>
Function* loaded(const char* name) {
  if (void* function = dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<Function*>(function);
  throw Error(ErrorCode::usage, std::string("NCCL is not loaded: there is no ") + name +
                                    "; libtorch's CUDA library brings it");
}

struct Library {
  decltype(ncclGetUniqueId)* get_unique_id = loaded<decltype(ncclGetUniqueId)>("ncclGetUniqueId");
  decltype(ncclCommInitRank)* init_rank = loaded<decltype(ncclCommInitRank)>("ncclCommInitRank");
  decltype(ncclCommDestroy)* destroy = loaded<decltype(ncclCommDestroy)>("ncclCommDestroy");
  decltype(ncclAllReduce)* all_reduce = loaded<decltype(ncclAllReduce)>("ncclAllReduce");
  decltype(ncclBroadcast)* broadcast = loaded<decltype(ncclBroadcast)>("ncclBroadcast");
  decltype(ncclGetErrorString)* error_string =
      loaded<decltype(ncclGetErrorString)>("ncclGetErrorString");

  void check(ncclResult_t result, const char* call) const {
    if (result == ncclSuccess) return;
    throw Error(ErrorCode::internal, std::string(call) + ": " + error_string(result) +
                                         "; NCCL_DEBUG=WARN tells more. Each rank needs a GPU of "
                                         "its own");
  }
};

ncclDataType_t nccl_type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kLong:
      return ncclInt64;
    default:
      throw Error(ErrorCode::internal, std::string("all_reduce_sum: type ") +
                                           c10::toString(tensor.scalar_type()) +
                                           ", expected f32, f64 or int64");
  }
}

}  // namespace

struct Nccl::State {
  Library library;
  ncclComm_t communicator = nullptr;
};

Nccl::Nccl(int rank, int size, at::Device device, const FromFirst& from_first)
    : state_(std::make_unique<State>()) {
  const cuda_kernels::CudaScope scope("nccl", device);
  const auto& library = state_->library;
  ncclUniqueId id{};
  if (rank == 0) library.check(library.get_unique_id(&id), "ncclGetUniqueId");
  from_first(id.internal, sizeof id.internal);
  library.check(library.init_rank(&state_->communicator, size, id, rank), "ncclCommInitRank");
}

Nccl::~Nccl() {
  if (state_->communicator) state_->library.destroy(state_->communicator);
}

void Nccl::all_reduce_sum(const at::Tensor& tensor) const {
  const cuda_kernels::CudaScope scope("nccl", tensor.device());
  void* data = tensor.mutable_data_ptr();
  state_->library.check(state_->library.all_reduce(
                            data, data, static_cast<std::size_t>(tensor.numel()),
                            nccl_type_of(tensor), ncclSum, state_->communicator, scope.stream()),
                        "ncclAllReduce");
}

void Nccl::broadcast(const at::Tensor& tensor, int root) const {
  const cuda_kernels::CudaScope scope("nccl", tensor.device());
  void* data = tensor.mutable_data_ptr();
  state_->library.check(state_->library.broadcast(data, data, tensor.nbytes(), ncclInt8, root,
                                                  state_->communicator, scope.stream()),
                        "ncclBroadcast");
}

}  // namespace zsq::launch
