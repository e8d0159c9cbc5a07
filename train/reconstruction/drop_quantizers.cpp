// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/drop_quantizers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/where.h>

namespace zsq::train {
namespace {

constexpr std::int64_t kPlaces = 1 << 16;

class DropQuantizer : public models::CustomOp {
 public:
  DropQuantizer(std::shared_ptr<const models::CustomOp> op, std::shared_ptr<Chances> chances)
      : op_(std::move(op)), chances_(std::move(chances)) {}
  std::string kind() const override { return "drop_quantizer"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore& parameters) const override {
    const auto quantized = op_->forward(inputs, parameters);
    return at::where(chances_->like(quantized), inputs[0], quantized);
  }

 private:
  std::shared_ptr<const models::CustomOp> op_;
  std::shared_ptr<Chances> chances_;
};

}  // namespace

Chances::Chances(double share, std::int64_t longest, std::uint64_t seed, at::Device device,
                 std::int64_t first)
    : places_(seed),
      row_(at::rand({longest + kPlaces}, at::detail::createCPUGenerator(seed), at::kFloat)
               .lt(share)
               .to(device)),
      first_(first) {}

at::Tensor Chances::like(const at::Tensor& like) {
  const auto place = static_cast<std::int64_t>(places_() % kPlaces);
  const auto before = first_ * (like.numel() / like.size(0));  // values of the images before
  return row_.as_strided(like.sizes(), like.strides(), place + before);
}

models::Graph drop_quantizers(const models::Graph& graph, const std::shared_ptr<Chances>& chances) {
  models::Graph dropping = graph;
  for (const auto id : quant::activation_sites(graph))
    dropping[id].op = models::Custom{
        std::make_shared<DropQuantizer>(models::get_if<models::Custom>(graph[id])->op, chances)};
  return dropping;
}

}  // namespace zsq::train
