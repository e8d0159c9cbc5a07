// SPDX-License-Identifier: Apache-2.0
#include "launch/mpi.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/stopwatch.h"
#include "launch/nccl.h"
#include "launch/ranks.h"

namespace zsq::launch {
namespace {

void check(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(ErrorCode::internal, std::string(call) + ": " + text);
}

MPI_Datatype mpi_type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kLong:
      return MPI_INT64_T;
    default:
      throw Error(ErrorCode::internal, std::string("all_reduce_sum: type ") +
                                           c10::toString(tensor.scalar_type()) +
                                           ", expected f32, f64 or int64");
  }
}

class OverMpi : public MpiRanks {
 public:
  explicit OverMpi(double timeout) : timeout_(timeout) {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
          "MPI_Comm_split_type");
    MPI_Comm_rank(machine, &local_rank_);
    MPI_Comm_size(machine, &local_size_);
    MPI_Comm_free(&machine);
    check(MPI_Comm_dup(MPI_COMM_WORLD, &at_end_), "MPI_Comm_dup");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }

  void all_reduce_sum(const at::Tensor& tensor) override {
    if (!tensor.is_cpu()) return nccl(tensor).all_reduce_sum(tensor);
    const auto type = mpi_type_of(tensor);
    in_pieces(tensor, tensor.element_size(), [&](char* begin, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, begin, count, type, MPI_SUM, MPI_COMM_WORLD, &request),
            "MPI_Iallreduce");
      wait(request);
    });
  }

  void broadcast(const at::Tensor& tensor, int root) override {
    if (!tensor.is_cpu()) return nccl(tensor).broadcast(tensor, root);
    in_pieces(tensor, 1, [&](char* begin, int count) { broadcast(begin, count, root); });
  }

  // On a communicator of its own: other ranks may still be in a collective that this one left.
  bool finish(double timeout) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(at_end_, &request), "MPI_Ibarrier");
    if (!comes(request, timeout)) return false;
    nccl_.reset();
    MPI_Finalize();
    return true;
  }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  void broadcast(char* begin, int bytes, int root) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(begin, bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request), "MPI_Ibcast");
    wait(request);
  }

  // MPI counts in int.
  template <class F>
  static void in_pieces(const at::Tensor& tensor, std::int64_t unit, const F& f) {
    if (!tensor.is_non_overlapping_and_dense())
      throw Error(ErrorCode::internal, "a collective of a tensor that is not dense");
    constexpr std::int64_t kMost = std::int64_t{1} << 28;
    auto* data = static_cast<char*>(tensor.mutable_data_ptr());
    const std::int64_t all = static_cast<std::int64_t>(tensor.nbytes()) / unit;
    for (std::int64_t begin = 0; begin < all; begin += kMost)
      f(data + begin * unit, static_cast<int>(std::min(kMost, all - begin)));
  }

  // A rank that hangs is not an error to MPI. Asking again and again is what drives the transfer;
  // after a while the core is left to others, as a rank may wait for rank 0 to write a file.
  static bool comes(MPI_Request& request, double timeout) {
    constexpr double kBusy = 0.02;  // seconds
    const Stopwatch begin;
    for (int done = 0; begin.seconds() < timeout;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done) return true;
      if (begin.seconds() < kBusy)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return false;
  }

  void wait(MPI_Request& request) const {
    if (comes(request, timeout_)) return;
    throw Error(ErrorCode::internal,
                "waited " + std::to_string(static_cast<int>(timeout_)) +
                    " s for the other ranks: one of them hangs or has ended. The last checkpoint "
                    "is kept (--resume); ZSQ_RANK_TIMEOUT=SECONDS waits longer");
  }

  Nccl& nccl(const at::Tensor& tensor) {
    if (!nccl_)
      nccl_.emplace(rank_, size_, tensor.device(),
                    [&](char* id, int bytes) { broadcast(id, bytes, 0); });
    return *nccl_;
  }

  double timeout_;
  MPI_Comm at_end_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  std::optional<Nccl> nccl_;
};

}  // namespace

std::string mpi_version() {
#ifdef OMPI_MAJOR_VERSION
  return "Open MPI " + std::to_string(OMPI_MAJOR_VERSION) + "." +
         std::to_string(OMPI_MINOR_VERSION);
#else
  return "MPI " + std::to_string(MPI_VERSION) + "." + std::to_string(MPI_SUBVERSION);
#endif
}

std::unique_ptr<MpiRanks> start_mpi(int wanted, const std::string& launcher, double timeout) {
  auto ranks = std::make_unique<OverMpi>(timeout);
  if (ranks->size() == wanted) return ranks;
  throw Error(ErrorCode::usage,
              launcher + " has started " + std::to_string(wanted) + " processes, but MPI (" +
                  mpi_version() + ") finds " + std::to_string(ranks->size()) +
                  ": the launcher belongs to another MPI. Use mpirun of the same one, or `srun "
                  "--mpi=pmix`; ZSQ_MPI=0 lets each process run alone");
}

}  // namespace zsq::launch
