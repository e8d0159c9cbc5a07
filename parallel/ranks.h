// SPDX-License-Identifier: Apache-2.0
// What jobs say with the collectives of a Communicator. On one rank each gives its argument back
// and costs nothing.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "parallel/communicator.h"

namespace zsq::parallel {

inline bool several(const Communicator& ranks) { return ranks.size() > 1; }
inline bool is_first(const Communicator& ranks) { return ranks.rank() == 0; }

// A rank's rows of a batch: contiguous, in the order of ranks, their numbers differ by one at most.
struct Rows {
  std::int64_t first = 0, count = 0, total = 0;
  bool whole() const { return count == total; }
  double share() const { return static_cast<double>(count) / static_cast<double>(total); }
  at::Tensor of(const at::Tensor& batch) const {  // [total, ...] -> [count, ...]
    return whole() ? batch : batch.narrow(0, first, count);
  }
};
// Error(usage) if there are fewer rows than ranks.
Rows rows_of(const Communicator& ranks, std::int64_t total);

// Sums of tensors of any shapes on one device, in one collective per type. The result has the
// strides of the argument.
std::vector<at::Tensor> summed(Communicator& ranks, std::vector<at::Tensor> tensors);

// What rank 0 has found.
double agreed(Communicator& ranks, double value);
bool agreed(Communicator& ranks, bool value);
// Whether it is so on any rank.
bool on_any(Communicator& ranks, bool value);
// Goes on when all ranks have come.
inline void wait_for_all(Communicator& ranks) { on_any(ranks, false); }

// What rank 0 has, in place.
void take_from_first(Communicator& ranks, const std::vector<at::Tensor>& tensors);

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
// Error(internal) on all ranks, which names the ranks whose tensors differ in a bit from those of
// rank 0.
void require_same(Communicator& ranks, const NamedTensors& tensors, const std::string& what);
// The same of a text; Error(usage) with `message`.
void require_same_text(Communicator& ranks, const std::string& text, const std::string& message);

}  // namespace zsq::parallel
