// SPDX-License-Identifier: Apache-2.0
#include "train/recomputed_blocks.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "models/execute.h"

namespace zsq::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// For the backward pass.
struct SavedBlock : torch::CustomClassHolder {
  explicit SavedBlock(std::shared_ptr<const RecomputedBlock> b) : block(std::move(b)) {}
  std::shared_ptr<const RecomputedBlock> block;
};

// The exit, then mean and variance of each place.
variable_list compute(const RecomputedBlock& block, const at::Tensor& entry) {
  variable_list outputs{models::execute(block.part, *block.parameters, entry)};
  for (std::size_t place = block.first; place < block.last; ++place) {
    losses::Moments& own = (*block.moments)[place];
    outputs.push_back(own.mean);
    outputs.push_back(own.variance);
    own = {};  // holds no graph alive
  }
  return outputs;
}

struct Function : torch::autograd::Function<Function> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& entry,
                               const std::shared_ptr<const RecomputedBlock>& block) {
    ctx->save_for_backward({entry});
    ctx->saved_data["block"] = c10::IValue::make_capsule(c10::make_intrusive<SavedBlock>(block));
    return compute(*block, entry);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto saved = ctx->saved_data["block"].toCapsule();
    const RecomputedBlock& block = *static_cast<const SavedBlock&>(*saved).block;
    const at::AutoGradMode with_gradients(true);
    const at::Tensor entry = ctx->get_saved_variables()[0].detach().requires_grad_(true);
    const auto outputs = compute(block, entry);
    return {torch::autograd::grad(outputs, {entry}, gradients)[0], at::Tensor()};
  }
};

}  // namespace

double bytes_held(const std::vector<BlockBytes>& blocks, std::size_t recomputed) {
  double exits = 0, largest = 0, kept = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i >= recomputed) {
      kept += blocks[i].inside;
      continue;
    }
    exits += blocks[i].exit;
    largest = std::max(largest, blocks[i].inside);
  }
  return exits + std::max(largest, kept);
}

std::size_t blocks_to_recompute(const std::vector<BlockBytes>& blocks, double bytes) {
  std::size_t best = 0;
  for (std::size_t n = 0; n < std::max<std::size_t>(1, blocks.size()); ++n) {
    if (bytes_held(blocks, n) <= bytes) return n;
    if (bytes_held(blocks, n) < bytes_held(blocks, best)) best = n;
  }
  return best;
}

BlockOutputs run_recomputed(const std::shared_ptr<const RecomputedBlock>& block,
                            const at::Tensor& entry) {
  const variable_list outputs = Function::apply(entry, block);
  BlockOutputs result{outputs[0], {}};
  for (std::size_t i = 1; i < outputs.size(); i += 2)
    result.moments.push_back({outputs[i], outputs[i + 1]});
  return result;
}

}  // namespace zsq::train
