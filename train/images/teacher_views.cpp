// SPDX-License-Identifier: Apache-2.0
#include "train/images/teacher_views.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>

#include <array>
#include <cstdio>

#include "core/seed.h"
#include "generator/augment.h"
#include "generator/upload.h"
#include "models/execute.h"
#include "train/agreement.h"
#include "train/images/image_bank.h"

namespace zsq::train {
namespace {

// Pixels, of n images. More helps small images no further, and harms photographs at 224 pixels.
at::Tensor moves(std::int64_t n, const at::Generator& stream) {
  return at::randint(-2, 3, {n}, stream, at::kFloat);
}

generator::Crops draw_view(std::int64_t n, std::int64_t height, std::int64_t width, bool mirror,
                           const at::Generator& stream) {
  return {.top = moves(n, stream),
          .left = moves(n, stream),
          .height = at::full({n}, height, at::kFloat),
          .width = at::full({n}, width, at::kFloat),
          .flip = at::full({n}, mirror, at::kBool)};
}

}  // namespace

at::Tensor TeacherViews::mean_logits(const Batch& batch, const models::Model& teacher,
                                     Precision precision, std::uint64_t step,
                                     const parallel::Rows& rows) const {
  if (count == 1) return batch.logits;
  const at::NoGradGuard no_grad;
  const auto height = batch.images.size(2), width = batch.images.size(3), n = rows.total;
  const auto stream = at::detail::createCPUGenerator(stream_seed(seed, "teacher.views", step));
  auto sum = batch.logits;
  for (std::int64_t view = 1; view < count; ++view) {
    const auto crops = draw_view(n, height, width, mirror && view % 2 == 1, stream);
    const auto images = generator::augment(batch.images, crops.rows(rows.first, rows.count))
                            .contiguous(batch.images.suggest_memory_format());
    sum = sum.add(models::execute(teacher.graph, teacher.parameters, images, nullptr, precision));
  }
  return sum.div(static_cast<double>(count));
}

double mirror_divergence(const at::Tensor& images, const models::Model& teacher) {
  const at::NoGradGuard no_grad;
  const auto some = generator::upload(images.slice(0, 0, 128), teacher.parameters.device());
  const auto stream = at::detail::createCPUGenerator(stream_seed(0, "teacher.mirror", 0));
  const auto expected = logits_of(teacher.graph, teacher.parameters, some);
  const auto divergence = [&](const at::Tensor& view) {
    return compare_outputs(teacher.graph.signature.kind, expected,
                           logits_of(teacher.graph, teacher.parameters, view))
        .kl;
  };
  constexpr int kDraws = 4;
  double moved = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto crops =
        draw_view(some.size(0), some.size(2), some.size(3), /*mirror=*/false, stream);
    moved += divergence(generator::augment(some, crops)) / kDraws;
  }
  return divergence(some.flip(3)) / moved;
}

TeacherViews choose_views(const TrainJob& job, Observer& observer) {
  TeacherViews views = {job.options.teacher_views, job.mirror, job.seed};
  if (views.count == 1 || !views.mirror || !job.bank) return views;
  const double divergence =
      parallel::agreed(job.ranks, mirror_divergence(job.bank->images(), job.teacher));
  views.mirror = divergence <= kMirrorSuits;
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "views of the teacher: its KL to mirrored images is %.2g times that to moved ones, "
                "so %s mirrored",
                divergence, views.mirror ? "every second one is" : "none is");
  observer.on_message(LogLevel::info, text.data());
  return views;
}

}  // namespace zsq::train
