// SPDX-License-Identifier: Apache-2.0
#include "train/images/image_bank.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/seed.h"
#include "formats/safetensors.h"
#include "generator/augment.h"
#include "generator/upload.h"
#include "losses/divergence.h"
#include "models/execute.h"
#include "models/load.h"

namespace zsq::train {
namespace {

// The images with the teacher's logits, which are their targets too.
Batch answered(const at::Tensor& images, const models::Model& teacher,
               const std::vector<models::NodeId>& features) {
  models::Taps taps{features, {}};
  Batch batch;
  batch.images = images;
  batch.logits = models::execute(teacher.graph, teacher.parameters, images, &taps);
  batch.targets = losses::soft_targets(teacher.graph.signature.kind, batch.logits);
  batch.features = taps.values;
  return batch;
}

}  // namespace

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

std::int64_t BankDraws::kept(const parallel::Rows& rows) const {
  const auto drawn = std::llround(share_ * static_cast<double>(rows.total));
  return std::clamp<std::int64_t>(rows.total - drawn - rows.first, 0, rows.count);
}

at::Tensor BankDraws::mixed(const at::Tensor& images, std::uint64_t step,
                            const parallel::Rows& rows) const {
  // Drawn for the whole batch, whoever has which part of it.
  const auto all_kept = kept({0, rows.total, rows.total}), n = rows.total - all_kept;
  const auto own = rows.count - kept(rows),
             skipped = std::max<std::int64_t>(0, rows.first - all_kept);
  const auto stream = [&](const char* name) {
    return at::detail::createCPUGenerator(stream_seed(seed_, name, step));
  };
  const auto draw = [&](const char* choice, const char* crop) {
    const auto chosen = at::randint(bank_.images.size(0), {n}, stream(choice), at::kLong);
    const auto crops =
        generator::draw_crops(n, images.size(2), images.size(3), options_, stream(crop))
            .rows(skipped, own);
    // A file's images lie on the host, those that were made for the run on its device.
    const auto places = generator::upload(chosen.narrow(0, skipped, own), bank_.images.device());
    return generator::augment(
        generator::upload(bank_.images.index_select(0, places), images.device()), crops);
  };
  auto drawn = draw("bank.choice", "bank.crop");
  if (options_.mixup_share + options_.cutmix_share > 0) {
    const auto weights =
        generator::draw_mixture(n, images.size(2), images.size(3), options_, stream("bank.mixup"))
            .narrow(0, skipped, own);
    drawn = drawn.lerp(draw("bank.other", "bank.other_crop"),
                       generator::upload(weights, images.device()));
  }
  return at::cat({images.narrow(0, 0, kept(rows)), drawn})
      .contiguous(images.suggest_memory_format());
}

Batch BankDraws::mixed(const Batch& batch, const models::Model& teacher,
                       const std::vector<models::NodeId>& features, std::uint64_t step,
                       const parallel::Rows& rows) const {
  const at::NoGradGuard no_grad;
  auto result = batch;
  const auto own = kept(rows);
  if (own == batch.images.size(0)) return result;
  result.images = mixed(batch.images, step, rows);
  const auto drawn = answered(result.images.slice(0, own), teacher, features);
  const auto join = [&](const at::Tensor& before, const at::Tensor& now) {
    return at::cat({before.narrow(0, 0, own), now.to(before.scalar_type())});
  };
  result.logits = join(batch.logits, drawn.logits);
  if (batch.targets.defined()) result.targets = join(batch.targets, drawn.targets);
  for (std::size_t i = 0; i < features.size(); ++i)
    result.features[i] = join(batch.features[i], drawn.features[i]);
  return result;
}

at::Tensor BankDraws::images(const models::Graph& network, at::Device device, std::uint64_t step,
                             const parallel::Rows& rows) const {
  const auto& shape = network.input_shape;
  const auto options = at::TensorOptions(device).memory_format(at::MemoryFormat::ChannelsLast);
  return mixed(at::empty({rows.count, shape[0], shape[1], shape[2]}, options), step, rows);
}

Batch BankDraws::batch(const models::Model& teacher, const std::vector<models::NodeId>& features,
                       std::uint64_t step, const parallel::Rows& rows) const {
  const at::NoGradGuard no_grad;
  const auto drawn = images(teacher.graph, teacher.parameters.device(), step, rows);
  return answered(drawn, teacher, features);
}

}  // namespace zsq::train
