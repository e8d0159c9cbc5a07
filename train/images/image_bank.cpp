// SPDX-License-Identifier: Apache-2.0
#include "train/images/image_bank.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/seed.h"
#include "formats/safetensors.h"
#include "generator/augment.h"
#include "generator/upload.h"
#include "models/execute.h"
#include "models/load.h"

namespace zsq::train {

ImageBank load_bank(const std::filesystem::path& path, const models::Model& teacher) {
  auto file = formats::read_safetensors(path);
  const auto* images = formats::find(file.tensors, "images");
  if (!images || images->dtype != formats::DType::f32 || images->shape.size() != 4 ||
      images->element_count() == 0) {
    throw Error(ErrorCode::bad_input, path.string() +
                                          ": is not an image bank: it holds no tensor 'images' of "
                                          "f32 [N, C, H, W]; `zsq generate --form safetensors` "
                                          "writes one");
  }
  const auto& wanted = teacher.graph.input_shape;
  if (!std::equal(wanted.begin(), wanted.end(), images->shape.begin() + 1)) {
    throw Error(ErrorCode::usage, path.string() + ": the images have shape " +
                                      c10::str(at::IntArrayRef(images->shape).slice(1)) +
                                      ", the network takes " + c10::str(at::IntArrayRef(wanted)) +
                                      "; make a bank with this network");
  }
  return {models::to_tensor(*images), std::move(file.metadata)};
}

std::int64_t BankDraws::kept(std::int64_t n) const {
  return n - static_cast<std::int64_t>(std::llround(share_ * static_cast<double>(n)));
}

at::Tensor BankDraws::mixed(const at::Tensor& images, std::uint64_t step) const {
  const auto n = images.size(0) - kept(images.size(0));
  const auto stream = [&](const char* name) {
    return at::detail::createCPUGenerator(stream_seed(seed_, name, step));
  };
  const auto chosen = at::randint(bank_.images.size(0), {n}, stream("bank.choice"), at::kLong);
  const auto crops =
      generator::draw_crops(n, images.size(2), images.size(3), options_, stream("bank.crop"));
  const auto drawn = generator::augment(
      generator::upload(bank_.images.index_select(0, chosen), images.device()), crops);
  return at::cat({images.narrow(0, 0, kept(images.size(0))), drawn})
      .contiguous(images.suggest_memory_format());
}

Batch BankDraws::mixed(const Batch& batch, const models::Model& teacher,
                       const std::vector<models::NodeId>& features, std::uint64_t step) const {
  const at::NoGradGuard no_grad;
  auto result = batch;
  const auto own = kept(batch.images.size(0));
  if (own == batch.images.size(0)) return result;
  result.images = mixed(batch.images, step);
  models::Taps taps{features, {}};
  const auto answers =
      models::execute(teacher.graph, teacher.parameters, result.images.slice(0, own), &taps);
  const auto join = [&](const at::Tensor& before, const at::Tensor& now) {
    return at::cat({before.narrow(0, 0, own), now.to(before.scalar_type())});
  };
  result.logits = join(batch.logits, answers);
  if (batch.targets.defined()) result.targets = join(batch.targets, answers.softmax(1));
  for (std::size_t i = 0; i < features.size(); ++i)
    result.features[i] = join(batch.features[i], taps.values[i]);
  return result;
}

}  // namespace zsq::train
