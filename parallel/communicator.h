// SPDX-License-Identifier: Apache-2.0
// The ranks of a data-parallel run: processes that do the same work on parts of each batch and hold
// the same weights. Every rank calls the same collectives in the same order; the one that calls
// alone waits for ever, or until the implementation gives up.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::parallel {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // 0 to size() - 1; rank 0 writes files and reports
  virtual int size() const = 0;

  // In place, of a dense f32, f64 or int64 tensor, of one shape and type on all ranks. All ranks
  // end with the same bits. Nothing is recorded for autograd.
  virtual void all_reduce_sum(const at::Tensor& tensor) = 0;
  // The same of any type: what rank `root` has.
  virtual void broadcast(const at::Tensor& tensor, int root) = 0;
};

// One process; every collective returns at once.
Communicator& alone();

// The ranks that this process belongs to: alone() unless the program was launched as several
// (launch/ranks.h). Jobs take it as their default.
Communicator& current();
// `communicator` outlives its use; gives the one before.
Communicator& set_current(Communicator& communicator);

}  // namespace zsq::parallel
