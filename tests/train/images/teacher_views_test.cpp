// SPDX-License-Identifier: Apache-2.0
#include "train/images/teacher_views.h"

#include <ATen/ops/_unique.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "tests/support/seed_each_test.h"
#include "tests/train/tiny.h"
#include "train/agreement.h"
#include "train/images/image_bank.h"

namespace zsq::train {
namespace {

// A batch of the tiny network.
struct Answers {
  explicit Answers(std::int64_t n = 8) : images(at::randn({n, 3, 8, 8})) {
    batch.images = images;
    batch.logits = logits_of(teacher.graph, teacher.parameters, images);
  }
  at::Tensor mean(std::int64_t count, bool mirror, std::uint64_t step = 0) const {
    return TeacherViews{count, mirror, 1}.mean_logits(batch, teacher, Precision::fp32, step,
                                                      {0, images.size(0), images.size(0)});
  }

  models::Model teacher = tiny_teacher();
  at::Tensor images;
  Batch batch;
};

// [25, N, classes]: the teacher's logits to every view that there may be, by padding and slicing.
at::Tensor to_all_views(const Answers& answers, bool mirror) {
  const auto padded = at::replication_pad2d(answers.images, {2, 2, 2, 2});
  std::vector<at::Tensor> all;
  for (int top = 0; top < 5; ++top)
    for (int left = 0; left < 5; ++left) {
      const auto moved = padded.slice(2, top, top + 8).slice(3, left, left + 8);
      all.push_back(logits_of(answers.teacher.graph, answers.teacher.parameters,
                              mirror ? moved.flip(3) : moved));
    }
  return at::stack(all);
}

// int64 [N]: which of the views each row is the answer to, or an error.
at::Tensor view_of(const at::Tensor& logits, const at::Tensor& all) {
  const auto [distance, view] = logits.sub(all).abs().amax(2).min(0);
  EXPECT_LT(distance.max().item<double>(), 1e-5);
  return view;
}

TEST(TeacherViews, TheSecondIsMirroredAndMovedByUpToTwoPixels) {
  const Answers answers(512);
  const auto second = answers.mean(2, true).mul(2).sub(answers.batch.logits);
  const auto view = view_of(second, to_all_views(answers, true));
  EXPECT_EQ(std::get<0>(at::_unique(view)).numel(), 25);  // some of the images each way
  view_of(answers.mean(2, false).mul(2).sub(answers.batch.logits), to_all_views(answers, false));
}

TEST(TeacherViews, TheThirdIsNotMirrored) {
  const Answers answers;
  const auto third = answers.mean(3, true).mul(3).sub(answers.mean(2, true).mul(2));
  view_of(third, to_all_views(answers, false));
}

TEST(TeacherViews, EachStepDrawsItsOwn) {
  const Answers answers;
  EXPECT_TRUE(answers.mean(2, true, 5).equal(answers.mean(2, true, 5)));
  EXPECT_FALSE(answers.mean(2, true, 5).equal(answers.mean(2, true, 6)));
}

TEST(TeacherViews, OfARanksRowsAreThoseOfTheWholeBatch) {
  const Answers answers;
  std::vector<at::Tensor> parts;
  for (const auto& [first, n] : {std::pair{0, 3}, {3, 5}}) {
    Batch part;
    part.images = answers.images.narrow(0, first, n);
    part.logits = answers.batch.logits.narrow(0, first, n);
    parts.push_back(TeacherViews{3, true, 1}.mean_logits(part, answers.teacher, Precision::fp32, 0,
                                                         {first, n, 8}));
  }
  EXPECT_TRUE(at::cat(parts).allclose(answers.mean(3, true)));
}

// Images that become brighter from left to right, each at its own rate: [64, 3, 8, 8].
at::Tensor slopes() {
  return at::arange(8, at::kFloat)
      .mul(at::rand({64, 1, 1, 1}).add(0.5))
      .expand({64, 3, 8, 8})
      .clone();
}

// The tiny network, its first filters made even or odd from left to right.
models::Model with_filters(double sign) {
  auto teacher = tiny_teacher();
  auto& weight = teacher.parameters.at("conv1.weight");
  weight = weight.add(weight.flip(3), sign);
  return teacher;
}

// Even filters see the same slope in the mirror, odd ones its opposite, of which ReLU leaves other
// channels.
TEST(MirrorDivergence, IsSmallUnlessTheNetworkTellsLeftFromRight) {
  auto even = with_filters(1);
  auto& second = even.parameters.at("conv2.weight");
  second = second.add(second.flip(3));
  EXPECT_LT(mirror_divergence(slopes(), even), 1e-3);
  EXPECT_GT(mirror_divergence(slopes(), with_filters(-1)), kMirrorSuits);
}

// What an odd network says of the mirrored images is left out, as by job.mirror.
TEST(MirrorDivergence, DecidesForABank) {
  const auto images = slopes();
  const auto weight_after = [&](bool mirror) {
    Tiny tiny;
    tiny.teacher = with_filters(-1);
    tiny.options.teacher_views = 2;
    const BankDraws bank({images, {}}, 1, {}, 1);
    auto job = tiny.job();
    job.bank = &bank;
    job.mirror = mirror;
    Observer silent;
    run(job, silent);
    return tiny.student.parameters.at("conv2.weight").detach().clone();
  };
  EXPECT_TRUE(weight_after(true).equal(weight_after(false)));
}

TEST(TeacherViews, AreWhatTheStudentLearnsFrom) {
  const auto weight_after = [](std::int64_t views, bool mirror) {
    Tiny tiny;
    tiny.options.teacher_views = views;
    auto job = tiny.job();
    job.mirror = mirror;
    Observer silent;
    run(job, silent);
    return tiny.student.parameters.at("conv2.weight").detach().clone();
  };
  const auto without = weight_after(1, true), mirrored = weight_after(2, true);
  EXPECT_FALSE(mirrored.equal(without));
  EXPECT_FALSE(mirrored.equal(weight_after(2, false)));
  EXPECT_TRUE(without.equal(weight_after(1, false)));
}

}  // namespace
}  // namespace zsq::train
