// SPDX-License-Identifier: Apache-2.0
// Ranks over MPI; tensors on a GPU go over NCCL (launch/nccl.h).
#pragma once
#include <memory>
#include <string>

#include "parallel/communicator.h"

namespace zsq::launch {

class MpiRanks : public parallel::Communicator {
 public:
  virtual int local_rank() const = 0;  // among the ranks of its machine
  virtual int local_size() const = 0;
  // Waits for all ranks, at most so many seconds, and ends MPI: true, and no collective may
  // follow. False if they have not all come.
  virtual bool finish(double timeout) = 0;
  // Ends all ranks with this exit code.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

// Starts MPI. A collective that takes longer than `timeout` seconds is an Error(internal).
// Error(usage) without MPI, and if MPI finds another number of ranks than the `wanted`, which
// `launcher` has started.
std::unique_ptr<MpiRanks> start_mpi(int wanted, const std::string& launcher, double timeout);

}  // namespace zsq::launch
