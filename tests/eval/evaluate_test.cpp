// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/support/networks.h"
#include "tests/support/shared.h"

namespace zsq::eval {
namespace {

// Image i holds the number i; its label is given.
class Numbers : public ImageSource {
 public:
  explicit Numbers(std::vector<std::int64_t> labels) : labels_(std::move(labels)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Batch load(std::int64_t begin, std::int64_t count) const override {
    const at::Tensor labels = at::tensor(at::ArrayRef<std::int64_t>(labels_));
    return {at::arange(begin, begin + count).to(at::kFloat).view({-1, 1, 1, 1}),
            labels.narrow(0, begin, count)};
  }

 private:
  std::vector<std::int64_t> labels_;
};

// Ten classes; the logit of class c is -|c - i|: class i wins, its neighbours follow.
at::Tensor nearest(const at::Tensor& images) {
  return -(at::arange(10).to(at::kFloat).unsqueeze(0) - images.view({-1, 1})).abs();
}

struct Watcher : Observer {
  void on_progress(const Progress& progress) override { steps.push_back(progress.step); }
  bool stop_requested() override { return asked++ == stop_at; }
  std::vector<std::int64_t> steps;
  int asked = 0, stop_at = -1;
};

TEST(Evaluate, CountsFirstAndFirstFive) {
  DataOptions options;
  options.eval_batch_size = 2;
  Watcher watcher;
  // Images 0 to 4: right, off by one, right, off by five (outside the five best), off by one.
  const Result result = evaluate(nearest, Numbers({0, 2, 2, 8, 3}), options, watcher);
  EXPECT_EQ(result.images, 5);
  EXPECT_DOUBLE_EQ(result.top1, 40);
  EXPECT_DOUBLE_EQ(result.top5, 80);
  EXPECT_TRUE(at::equal(result.predictions, at::arange(5)));
  EXPECT_EQ(watcher.steps, (std::vector<std::int64_t>{2, 4, 5}));
}

TEST(Evaluate, TakesTheFirstImagesOnly) {
  DataOptions options;
  options.eval_images = 3;
  Watcher watcher;
  EXPECT_EQ(evaluate(nearest, Numbers({0, 2, 2, 8, 3}), options, watcher).images, 3);
  options.eval_images = 100;
  EXPECT_EQ(evaluate(nearest, Numbers({0, 2, 2, 8, 3}), options, watcher).images, 5);
}

TEST(Evaluate, FewerThanFiveClasses) {
  Watcher watcher;
  const auto two = [](const at::Tensor& x) { return nearest(x).narrow(1, 0, 2); };
  EXPECT_DOUBLE_EQ(evaluate(two, Numbers({0, 0}), {}, watcher).top5, 100);
}

TEST(Evaluate, RefusesLabelsThatTheNetworkDoesNotHave) {
  Watcher watcher;
  EXPECT_THROW(evaluate(nearest, Numbers({0, 10}), {}, watcher), Error);
  EXPECT_THROW(evaluate(nearest, Numbers({0, -1}), {}, watcher), Error);
  EXPECT_THROW(evaluate(nearest, Numbers({}), {}, watcher), Error);
}

TEST(Evaluate, StopsWhenAsked) {
  DataOptions options;
  options.eval_batch_size = 1;
  Watcher watcher;
  watcher.stop_at = 1;
  try {
    evaluate(nearest, Numbers({0, 1, 2}), options, watcher);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stopped);
  }
}

// Image 3 cannot be read.
class Spoilt : public Numbers {
 public:
  using Numbers::Numbers;
  Batch load(std::int64_t begin, std::int64_t count) const override {
    if (begin == 3) throw Error(ErrorCode::bad_input, "3.jpg is damaged");
    return Numbers::load(begin, count);
  }
};

TEST(Evaluate, AnImageThatCannotBeReadEndsItAfterTheBatchesBefore) {
  for (const std::int64_t threads : {1, 4}) {
    DataOptions options;
    options.eval_batch_size = 1;
    options.eval_threads = threads;
    Watcher watcher;
    try {
      evaluate(nearest, Spoilt({0, 1, 2, 3, 4}), options, watcher);
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "3.jpg is damaged");
    }
    EXPECT_EQ(watcher.steps, (std::vector<std::int64_t>{1, 2, 3}));
  }
}

// What another framework counted: PyTorch on the images that it labelled itself, and, beside the
// repository, the published networks on real data. Pillow decodes and resizes there, OpenCV here: a
// pixel may differ by one.
struct Counted {
  std::string name;
  std::filesystem::path model, data;
  std::string preset;
  std::int64_t images;
  double top1, top5, tolerance;
};
std::ostream& operator<<(std::ostream& stream, const Counted& c) { return stream << c.name; }

std::vector<Counted> counted() {
  const auto made = test::network_path(""), shared = test::shared_path("");
  std::vector<Counted> all{{"resnet20", made / "resnet20_random.onnx", made / "cifar10", "cifar10",
                            317, 100, 100, 0.005}};
  const bool published = std::filesystem::exists(shared / "models/resnet20_cifar10.onnx");
  if (published)
    all.push_back({"trained_resnet20", shared / "models/resnet20_cifar10.onnx",
                   shared / "data/cifar10", "cifar10", 1017, 91.64, 99.80, 0.005});
#ifdef ZSQ_OPENCV
  const char *lite = "efficientnet_lite0", *file = "efficientnet_lite0.onnx";
  all.push_back({"photographs", made / file, made / "photographs", lite, 30, 100, 100, 3.4});
  if (published)
    all.push_back({"imagenet", shared / "models" / file, shared / "data/imagenet_sample", lite, 300,
                   87.00, 97.33, 0.34});
#endif
  return all;
}

class OtherFramework : public testing::TestWithParam<Counted> {};

TEST_P(OtherFramework, CountsTheSame) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const Counted& c = GetParam();
  const models::Model model = models::load(c.model);
  Observer silent;
  const Result result = evaluate(
      [&](const at::Tensor& x) { return models::execute(model.graph, model.parameters, x); },
      *open_data(c.data.string(), resolve({.preset = c.preset}, {model.graph.input_shape[1],
                                                                 model.graph.input_shape[2]})),
      {}, silent);
  EXPECT_EQ(result.images, c.images);
  EXPECT_NEAR(result.top1, c.top1, c.tolerance);
  EXPECT_NEAR(result.top5, c.top5, c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Evaluate, OtherFramework, testing::ValuesIn(counted()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zsq::eval
