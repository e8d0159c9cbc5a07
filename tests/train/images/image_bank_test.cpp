// SPDX-License-Identifier: Apache-2.0
#include "train/images/image_bank.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "formats/safetensors.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/support/seed_each_test.h"
#include "tests/train/tiny.h"

namespace zsq::train {
namespace {

namespace fs = std::filesystem;

class BankFile : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  void save(const std::string& name, const at::Tensor& images) {
    formats::write_safetensors(path_, {{{name, models::to_array(images)}}, {{"seed", "5"}}});
  }
  ErrorCode code() {
    try {
      load_bank(path_, tiny_teacher());
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  }
  fs::path path_ = fs::temp_directory_path() / ("zsq_bank_" + std::to_string(getpid()));
};

TEST_F(BankFile, IsReadWithItsMetadata) {
  const auto images = at::randn({5, 3, 8, 8});
  save("images", images);
  const auto bank = load_bank(path_, tiny_teacher());
  EXPECT_TRUE(bank.images.equal(images));
  EXPECT_EQ(bank.metadata.at("seed"), "5");
}

TEST_F(BankFile, OfAnotherKindIsRefused) {
  EXPECT_EQ(code(), ErrorCode::bad_input);  // none
  save("pictures", at::randn({5, 3, 8, 8}));
  EXPECT_EQ(code(), ErrorCode::bad_input);
  save("images", at::randn({5, 3, 8, 8}).to(at::kHalf));
  EXPECT_EQ(code(), ErrorCode::bad_input);
  save("images", at::randn({0, 3, 8, 8}));
  EXPECT_EQ(code(), ErrorCode::bad_input);
  save("images", at::randn({5, 3, 8, 9}));
  EXPECT_EQ(code(), ErrorCode::usage);
}

ImageOptions plain() {
  ImageOptions options;
  options.augment_share = 0;
  return options;
}

// Image i of the bank is i everywhere.
ImageBank numbered(std::int64_t n) {
  return {at::arange(n, at::kFloat).view({n, 1, 1, 1}).expand({n, 3, 8, 8}).contiguous(), {}};
}

TEST(BankDraws, ReplaceTheLastImagesOfABatch) {
  const BankDraws draws(numbered(50), 0.3, plain(), 1);
  const auto images = at::full({10, 3, 8, 8}, -1.0);
  const auto mixed = draws.mixed(images, 4);
  EXPECT_TRUE(mixed.slice(0, 0, 7).equal(images.slice(0, 0, 7)));
  const auto drawn = mixed.slice(0, 7);
  EXPECT_GE(drawn.min().item<double>(), 0);
  // Whole images of the bank: one number each.
  EXPECT_LT((drawn - drawn.slice(1, 0, 1).slice(2, 0, 1).slice(3, 0, 1)).abs().max().item<double>(),
            1e-4);
  EXPECT_TRUE(mixed.equal(draws.mixed(images, 4)));
  EXPECT_FALSE(mixed.equal(draws.mixed(images, 5)));
  EXPECT_FALSE(mixed.equal(BankDraws(numbered(50), 0.3, plain(), 2).mixed(images, 4)));
}

// Two images of the bank are the numbers 0 and 1: what lies between is the share of the other.
TEST(BankDraws, MixHalfOfTheImagesWithOthers) {
  constexpr std::int64_t kImages = 4000;
  auto options = plain();
  options.mixup_share = 0.5;
  const BankDraws draws(numbered(2), 1, options, 1);
  const auto places = at::full({kImages, 3, 8, 8}, -1.0);
  const auto mixed = draws.mixed(places, 4);
  const auto value = mixed.select(1, 0).select(1, 0).select(1, 0);
  EXPECT_LT((mixed - value.view({-1, 1, 1, 1})).abs().max().item<double>(), 1e-5);
  const auto inside = value.masked_select(value.gt(1e-6).logical_and(value.lt(1 - 1e-6)));
  // Of the half that is mixed, half have two different numbers.
  EXPECT_NEAR(static_cast<double>(inside.size(0)) / kImages, 0.25, 0.03);
  EXPECT_NEAR(inside.mean().item<double>(), 0.5, 0.03);
  // Which images are drawn does not depend on the mixture, and a rank has its rows of the whole.
  const auto alone = BankDraws(numbered(2), 1, plain(), 1).mixed(places, 4);
  EXPECT_GT((mixed == alone).select(1, 0).select(1, 0).select(1, 0).sum().item<std::int64_t>(),
            kImages * 7 / 10);
  EXPECT_TRUE(draws.mixed(places.narrow(0, 0, 3), 4, {5, 3, kImages}).equal(mixed.narrow(0, 5, 3)));
}

TEST(BankDraws, CutRectanglesOfOtherImages) {
  constexpr std::int64_t kImages = 200;
  auto options = plain();
  options.cutmix_share = 1;
  const BankDraws draws(numbered(50), 1, options, 1);
  const auto places = at::full({kImages, 3, 8, 8}, -1.0);
  const auto mixed = draws.mixed(places, 4),
             alone = BankDraws(numbered(50), 1, plain(), 1).mixed(places, 4);
  // Each pixel is of the image that is drawn without, or of one other.
  const auto foreign = (mixed - alone).abs().gt(1e-3).select(1, 0);
  EXPECT_NEAR(foreign.to(at::kDouble).mean().item<double>(), 0.5, 0.1);
  const auto other = mixed.select(1, 0).mul(foreign).amax({1, 2}).view({-1, 1, 1});
  EXPECT_LT((mixed.select(1, 0) - other).mul(foreign).abs().max().item<double>(), 1e-3);
  EXPECT_TRUE(draws.mixed(places.narrow(0, 0, 3), 4, {5, 3, kImages}).equal(mixed.narrow(0, 5, 3)));
}

TEST(BankDraws, EveryImageComesUp) {
  const BankDraws draws(numbered(6), 1, plain(), 1);
  std::set<int> seen;
  for (std::uint64_t step = 0; step < 10; ++step) {
    const auto mixed = draws.mixed(at::full({8, 3, 8, 8}, -1.0), step);
    for (std::int64_t i = 0; i < 8; ++i)
      seen.insert(static_cast<int>(std::lround(mixed[i][0][0][0].item<double>())));
  }
  EXPECT_EQ(seen, (std::set<int>{0, 1, 2, 3, 4, 5}));
}

TEST(BankDraws, BringTheTeachersAnswers) {
  const auto teacher = tiny_teacher();
  const auto answers = [&](const at::Tensor& images) {
    return models::execute(teacher.graph, teacher.parameters, images);
  };
  const auto images = at::randn({8, 3, 8, 8});
  const std::vector<models::NodeId> features{teacher.graph.id_of("conv1.relu")};
  const auto maps = [&](const at::Tensor& x) {
    models::Taps taps{features, {}};
    models::execute(teacher.graph, teacher.parameters, x, &taps);
    return taps.values;
  };
  const Batch batch{images, answers(images), at::full({}, 0.5), at::zeros({}, at::kBool),
                    maps(images)};
  ImageOptions options;
  options.augment_share = 1;
  const ImageBank bank{at::randn({20, 3, 8, 8}), {}};
  const auto mixed = BankDraws(bank, 0.5, options, 1).mixed(batch, teacher, features, 3);
  EXPECT_FALSE(mixed.images.equal(images));
  EXPECT_LT((mixed.logits - answers(mixed.images)).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(mixed.features.at(0).allclose(maps(mixed.images).at(0), 1e-4, 1e-5));
  EXPECT_EQ(mixed.loss.item<double>(), 0.5);
  const auto alone = BankDraws(bank, 0.01, options, 1).mixed(batch, teacher, features, 3);
  EXPECT_TRUE(alone.images.equal(images));
}

// All of a batch is the bank's: as if an image of a generator were replaced at each place.
TEST(BankDraws, MakeWholeBatchesWithoutAGenerator) {
  const auto teacher = tiny_teacher();
  const std::vector<models::NodeId> features{teacher.graph.id_of("conv1.relu")};
  const BankDraws draws({at::randn({20, 3, 8, 8}), {}}, 1, {}, 1);
  EXPECT_TRUE(draws.whole());
  EXPECT_FALSE(BankDraws(numbered(2), 0.99, {}, 1).whole());
  const auto batch = draws.batch(teacher, features, 3, {0, 8, 8});
  EXPECT_TRUE(batch.images.equal(draws.mixed(at::full({8, 3, 8, 8}, -1.0), 3)));
  models::Taps taps{features, {}};
  const auto answers = models::execute(teacher.graph, teacher.parameters, batch.images, &taps);
  EXPECT_TRUE(batch.logits.equal(answers));
  EXPECT_TRUE(batch.targets.allclose(answers.softmax(1)));
  EXPECT_TRUE(batch.features.at(0).equal(taps.values.at(0)));
  EXPECT_FALSE(batch.loss.defined());
  // The rows of a rank are those of the whole.
  const auto last = draws.batch(teacher, features, 3, {5, 3, 8});
  EXPECT_TRUE(last.images.equal(batch.images.slice(0, 5)));
}

TEST(BankDraws, LeaveTheGeneratorAlone) {
  Tiny tiny;
  const BankDraws bank({at::randn({20, 3, 8, 8}), {}}, 1, {}, 1);
  tiny.options.validation_checks = 0;
  auto job = tiny.job();
  job.bank = &bank;
  int shown = 0;
  job.on_images = [&](std::int64_t, const at::Tensor&) { ++shown; };
  const auto draw = tiny.generator.draw(4, 0);
  const auto images = tiny.generator.forward(draw).clone();
  const auto before = tiny.student.parameters.at("conv2.weight").detach().clone();
  Watch watch;
  const auto report = run(job, watch);
  EXPECT_EQ(report.iterations, 10);
  EXPECT_EQ(report.loss_generator, 0);
  EXPECT_GT(report.warmup_seconds, 0);  // calibration
  EXPECT_EQ(shown, 0);
  ASSERT_EQ(watch.seen.size(), 10u);
  for (const Progress& progress : watch.seen) {
    EXPECT_EQ(progress.phase, "fine-tune");  // no warm-up
    for (const auto& [name, value] : progress.metrics) EXPECT_NE(name, "loss_generator");
  }
  EXPECT_FALSE(tiny.student.parameters.at("conv2.weight").equal(before));
  EXPECT_TRUE(tiny.generator.forward(draw).equal(images));
}

TEST(BankDraws, TrainTheStudent) {
  const auto weights_after = [](const BankDraws* bank) {
    Tiny tiny;
    auto job = tiny.job();
    job.bank = bank;
    Observer observer;
    EXPECT_EQ(run(job, observer).skipped, 0);
    return tiny.student.parameters.at("conv2.weight").detach().clone();
  };
  const BankDraws a({at::randn({20, 3, 8, 8}), {}}, 0.5, {}, 1);
  const auto with = weights_after(&a);
  EXPECT_TRUE(with.equal(weights_after(&a)));
  EXPECT_FALSE(with.equal(weights_after(nullptr)));
}

}  // namespace
}  // namespace zsq::train
