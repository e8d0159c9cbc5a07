// SPDX-License-Identifier: Apache-2.0
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/_sample_dirichlet.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "core/seed.h"
#include "generator/generator.h"
#include "generator/upload.h"

namespace zsq::generator {
namespace {

at::Tensor mixing_weights(std::int64_t n, std::int64_t labels, const GeneratorOptions& options,
                          const at::Generator& stream) {
  if (options.mix_weights == MixWeights::dirichlet) {
    return at::_sample_dirichlet(at::full({n, labels}, options.dirichlet_alpha, at::kDouble),
                                 stream)
        .to(at::kFloat);
  }
  return at::softmax(at::randn({n, labels}, stream, at::kFloat), 1);
}

}  // namespace

LatentBatch LatentBatch::rows(std::int64_t first, std::int64_t count) const {
  const auto of = [&](const at::Tensor& t) { return t.narrow(0, first, count); };
  return {of(labels), of(weights), of(noise), of(targets)};
}

LatentBatch Generator::draw(std::int64_t n, std::uint64_t step) const {
  const auto device = store_.at("embedding").device();
  const auto stream = [&](const char* name) {
    return at::detail::createCPUGenerator(stream_seed(seed_, name, step));
  };
  // Labels in the order of random keys: distinct, and every choice equally likely.
  const auto keys = at::rand({n, classes_}, stream("labels"), at::kFloat);
  const auto labels = std::get<1>(at::topk(keys, labels_per_image_, 1));

  const auto choices = options_.superposing == Superposing::per_sample ? n : 1;
  const auto superposed =
      at::rand({choices, 1}, stream("superpose"), at::kFloat).lt(options_.superposed_share);
  auto single = at::zeros({1, labels_per_image_});
  single.select(1, 0).fill_(1);
  const auto weights =
      at::where(superposed, mixing_weights(n, labels_per_image_, options_, stream("mix")), single);

  auto noise_stream = stream("noise");
  if (!device.is_cpu()) {  // the one large draw is made where it is used
    noise_stream = at::globalContext()
                       .getAcceleratorHooksInterface(device.type())
                       .getNewGenerator(device.index());
    noise_stream.set_current_seed(stream_seed(seed_, "noise", step));
  }
  const auto noise = at::randn({n, labels_per_image_, feature_width_}, noise_stream,
                               at::TensorOptions(device).dtype(at::kFloat));
  const auto targets = at::zeros({n, classes_}).scatter_add_(1, labels, weights);
  return {upload(labels, device), upload(weights, device), noise, upload(targets, device)};
}

}  // namespace zsq::generator
