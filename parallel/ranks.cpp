// SPDX-License-Identifier: Apache-2.0
#include "parallel/ranks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <string_view>

#include "core/error.h"

namespace zsq::parallel {
namespace {

// The values in the order of memory, which is the same on all ranks.
at::Tensor flat(const at::Tensor& tensor) {
  const auto dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  return dense.as_strided({dense.numel()}, {1});
}

// Ranks whose `hash` is not that of rank 0, as "1, 3"; empty if there is none.
std::string who_differs(Communicator& ranks, std::int64_t hash) {
  const auto first = at::full({}, hash, at::kLong);
  ranks.broadcast(first, 0);
  const auto differs = at::zeros({ranks.size()}, at::kLong);
  differs[ranks.rank()].fill_(first.item<std::int64_t>() != hash);
  ranks.all_reduce_sum(differs);
  std::string who;
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (differs[rank].item<std::int64_t>() != 0)
      who += (who.empty() ? "" : ", ") + std::to_string(rank);
  return who;
}

std::int64_t hash_of(std::string_view bytes) {
  return static_cast<std::int64_t>(std::hash<std::string_view>()(bytes));
}

}  // namespace

Rows rows_of(const Communicator& ranks, std::int64_t total) {
  const std::int64_t size = ranks.size(), rank = ranks.rank();
  if (total < size)
    throw Error(ErrorCode::usage, "a batch of " + std::to_string(total) +
                                      " images cannot be split over " + std::to_string(size) +
                                      " ranks; start fewer, or set a larger batch size");
  const auto first = rank * total / size;
  return {first, (rank + 1) * total / size - first, total};
}

std::vector<at::Tensor> summed(Communicator& ranks, std::vector<at::Tensor> tensors) {
  if (!several(ranks)) return tensors;
  const at::NoGradGuard no_grad;
  std::map<at::ScalarType, std::vector<std::size_t>> by_type;
  for (std::size_t i = 0; i < tensors.size(); ++i) by_type[tensors[i].scalar_type()].push_back(i);
  for (const auto& [type, places] : by_type) {
    std::vector<at::Tensor> parts;
    for (const auto i : places) parts.push_back(flat(tensors[i].detach()));
    const auto all = at::cat(parts);
    ranks.all_reduce_sum(all);
    std::int64_t begin = 0;
    for (const auto i : places) {
      const auto sum = at::empty_like(tensors[i]);
      flat(sum).copy_(all.narrow(0, begin, sum.numel()));
      begin += sum.numel();
      tensors[i] = sum;
    }
  }
  return tensors;
}

double agreed(Communicator& ranks, double value) {
  if (!several(ranks)) return value;
  const auto first = at::full({}, value, at::kDouble);
  ranks.broadcast(first, 0);
  return first.item<double>();
}

bool agreed(Communicator& ranks, bool value) { return agreed(ranks, value ? 1.0 : 0.0) != 0; }

bool on_any(Communicator& ranks, bool value) {
  if (!several(ranks)) return value;
  const auto count = at::full({}, value ? 1 : 0, at::kLong);
  ranks.all_reduce_sum(count);
  return count.item<std::int64_t>() != 0;
}

void take_from_first(Communicator& ranks, const std::vector<at::Tensor>& tensors) {
  if (!several(ranks)) return;
  const at::NoGradGuard no_grad;
  for (const auto& tensor : tensors) {
    const auto values = tensor.detach();
    if (values.is_non_overlapping_and_dense()) {
      ranks.broadcast(flat(values), 0);
      continue;
    }
    const auto dense = values.contiguous();
    ranks.broadcast(dense, 0);
    values.copy_(dense);
  }
}

void require_same(Communicator& ranks, const NamedTensors& tensors, const std::string& what) {
  if (!several(ranks)) return;
  std::int64_t hash = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto values = tensor.detach().cpu().contiguous();
    const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()),
                                 values.nbytes());
    hash = hash_of(name + std::to_string(hash)) ^ hash_of(bytes);
  }
  const std::string who = who_differs(ranks, hash);
  if (who.empty()) return;
  throw Error(ErrorCode::internal,
              what + ": the ranks are no longer equal: rank 0 has other values than rank " + who +
                  "; nothing was saved. Start all ranks on machines of one kind, with the same "
                  "program and number of threads, and go on from the last checkpoint (--resume)");
}

void require_same_text(Communicator& ranks, const std::string& text, const std::string& message) {
  if (!several(ranks)) return;
  if (const std::string who = who_differs(ranks, hash_of(text)); !who.empty())
    throw Error(ErrorCode::usage, message + " (rank 0 and rank " + who + " differ)");
}

}  // namespace zsq::parallel
