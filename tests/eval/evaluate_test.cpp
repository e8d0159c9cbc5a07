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

Result measure(const std::string& model_file, const std::string& data, const std::string& name) {
  const models::Model model = models::load(test::shared_path(model_file));
  Observer silent;
  return evaluate(
      [&](const at::Tensor& x) { return models::execute(model.graph, model.parameters, x); },
      *open_data(
          test::shared_path(data).string(),
          resolve({.preset = name}, {model.graph.input_shape[1], model.graph.input_shape[2]})),
      {}, silent);
}

// Accuracies of the models' own README, measured there with another framework.
TEST(Evaluate, ResNet20OnCifar10) {
  ZSQ_SKIP_WITHOUT(test::shared_path("models/resnet20_cifar10.onnx"));
  const Result result = measure("models/resnet20_cifar10.onnx", "data/cifar10", "cifar10");
  EXPECT_EQ(result.images, 1017);
  EXPECT_NEAR(result.top1, 91.64, 0.005);
  EXPECT_NEAR(result.top5, 99.80, 0.005);
}

#ifdef ZSQ_OPENCV
// Pillow's decoder there, OpenCV's here: a pixel value may differ by one.
TEST(Evaluate, EfficientNetLiteOnImageNet) {
  ZSQ_SKIP_WITHOUT(test::shared_path("models/efficientnet_lite0.onnx"));
  const Result result =
      measure("models/efficientnet_lite0.onnx", "data/imagenet_sample", "efficientnet_lite0");
  EXPECT_EQ(result.images, 300);
  EXPECT_NEAR(result.top1, 87.00, 0.34);
  EXPECT_NEAR(result.top5, 97.33, 0.34);
}
#endif

}  // namespace
}  // namespace zsq::eval
