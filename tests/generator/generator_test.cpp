// SPDX-License-Identifier: Apache-2.0
#include "generator/generator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

#include "core/error.h"
#include "tests/generator/teacher.h"

namespace zsq::generator {
namespace {

std::map<std::string, at::Tensor> named(const Generator& generator) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, value] : generator.parameters()) all[name] = value;
  return all;
}

TEST(Generator, ImagesAreNormalisedPerChannel) {
  for (const auto& [height, width] :
       {std::pair(8, 8), {16, 16}, {32, 32}, {36, 36}, {18, 18}, {31, 5}, {33, 47}, {1, 3}}) {
    const Generator generator(rectangular_teacher(height, width, 10, 12), {}, 0);
    const auto images = generator.forward(generator.draw(16, 0));
    ASSERT_EQ(images.sizes(), at::IntArrayRef({16, 3, height, width}));
    EXPECT_TRUE(images.is_contiguous(at::MemoryFormat::ChannelsLast));
    const auto rows = images.detach().transpose(0, 1).flatten(1);
    EXPECT_LT(rows.mean(1).abs().max().item<double>(), 1e-4);
    EXPECT_LT(rows.var(1, false).sub(1).abs().max().item<double>(), 1e-2);
  }
}

TEST(Generator, EmbeddingsStartFromTheClassifier) {
  const auto model = teacher(16, 10, 12);
  const auto eei = named(Generator(model, {}, 0)).at("embedding");
  EXPECT_TRUE(eei.equal(model.parameters.at("head.weight")));
  EXPECT_NE(eei.data_ptr(), model.parameters.at("head.weight").data_ptr());

  GeneratorOptions options;
  options.embeddings_from_classifier = false;
  options.train_embeddings = false;
  const auto random = named(Generator(model, options, 0)).at("embedding");
  EXPECT_FALSE(random.equal(eei));
  EXPECT_FALSE(random.requires_grad());
  EXPECT_TRUE(eei.requires_grad());
}

// As pytorchcv's MobileNetV2 has it: a convolution after the pooling, then Flatten.
TEST(Generator, EmbeddingsStartFromAClassifierThatIsAConvolution) {
  const auto model = teacher(16, 10, 12, /*linear=*/false);
  const Generator generator(model, {}, 0);
  const auto rows = model.parameters.at("head.weight").view({10, 12});
  EXPECT_TRUE(named(generator).at("embedding").equal(rows));
  EXPECT_NE(named(generator).at("embedding").data_ptr(), rows.data_ptr());
  EXPECT_EQ(generator.forward(generator.draw(4, 0)).size(0), 4);
}

TEST(Generator, LatentWidthFollowsTheImageUnlessGiven) {
  const auto width = [](std::int64_t size, const GeneratorOptions& options) {
    return named(Generator(teacher(size, 10, 12), options, 0)).at("project.weight").size(1);
  };
  GeneratorOptions options;
  EXPECT_EQ(width(32, options), 64);
  EXPECT_EQ(width(64, options), 100);
  options.latent_width = 7;
  EXPECT_EQ(width(32, options), 7);
  options.disentangle = false;
  EXPECT_EQ(width(32, options), 12);
}

TEST(Generator, EveryTrainableTensorGetsAGradient) {
  for (const auto& [height, width] : {std::pair(16, 16), {40, 40}, {17, 30}, {33, 47}}) {
    const Generator generator(rectangular_teacher(height, width, 10, 12), {}, 0);
    const auto images = generator.forward(generator.draw(16, 0));
    (images * at::rand_like(images)).sum().backward();
    for (const auto& [name, value] : generator.parameters()) {
      ASSERT_TRUE(value.grad().defined()) << name;
      EXPECT_GT(value.grad().abs().max().item<double>(), 0) << name;
    }
  }
}

// Superposing two labels: the images of a draw whose weights are (a, 1 - a) come from the
// a-weighted sum of both latents, at their length. With one network and no noise that is a draw of
// the mixed embedding.
TEST(Generator, SuperposesNormalisedEmbeddings) {
  GeneratorOptions options;
  options.noise_scale = 0;
  const Generator mixed(teacher(8, 3, 6), options, 0);
  auto draw = mixed.draw(4, 0);
  draw.labels = at::stack({at::zeros({4}, at::kLong), at::zeros({4}, at::kLong) + 1}, 1);
  draw.weights = at::stack({at::zeros({4}) + 0.25, at::zeros({4}) + 0.75}, 1);

  // The third class's embedding becomes the mixture, already normalised up to scale and shift.
  const auto rows = at::layer_norm(named(mixed).at("embedding").detach(), {6});
  const auto target = rows[0] * 0.25 + rows[1] * 0.75;
  const auto norm = target.var(0, false).sqrt().item<double>();
  const Generator single(teacher(8, 3, 6), options, 0);
  auto state = mixed.parameters();
  for (auto& [name, value] : state) {
    value = value.detach().clone();
    if (name == "embedding") value[2] = target;
    // Undo the scale that normalisation takes out, and give the one that mixing is to have.
    if (name == "map.weight") value.mul_(norm / std::hypot(0.25, 0.75));
  }
  Generator reference(teacher(8, 3, 6), options, 0);
  reference.load(state);
  auto one = draw;
  one.labels = at::zeros({4, 1}, at::kLong) + 2;
  one.weights = at::zeros({4, 1}) + 1;
  one.noise = draw.noise.slice(1, 0, 1);
  // All four images of a batch are alike here, so BatchNorm sees the same in both.
  EXPECT_LT((mixed.forward(draw) - reference.forward(one)).abs().max().item<double>(), 2e-2);
}

// Else images of many labels are made of nearly one latent, that of no label at all.
TEST(Generator, AMixtureOfEmbeddingsIsAsLongAsOne) {
  GeneratorOptions options;
  options.superposed_share = 1;
  options.disentangle = false;
  const auto lengths = [&](std::int64_t labels, bool normalise) {
    options.superposed_labels = labels;
    options.normalise_superposed = normalise;
    const Generator generator(teacher(8, 300, 512), options, 0);
    return generator.latent(generator.draw(64, 0)).detach().square().mean(1).sqrt();
  };
  for (const std::int64_t labels : {1, 2, 250}) {
    EXPECT_LT(lengths(labels, true).sub(1).abs().max().item<double>(), 0.2) << labels;
    EXPECT_NEAR(lengths(labels, true).mean().item<double>(), 1, 0.02) << labels;
  }
  EXPECT_LT(lengths(250, false).max().item<double>(), 0.15);  // as published
}

TEST(Generator, NormalisingLeavesSingleLabelsAlone) {
  GeneratorOptions options;
  const auto model = teacher(8, 10, 12);
  const Generator ours(model, options, 0);
  options.normalise_superposed = false;
  const Generator published(model, options, 0);
  const auto draw = ours.draw(64, 0);
  const auto single = draw.weights.select(1, 0).eq(1);
  EXPECT_GT(single.sum().item<int>(), 20);
  const auto same = ours.latent(draw).eq(published.latent(draw)).all(1);
  EXPECT_TRUE(same.equal(single));
}

using State = std::vector<std::pair<std::string, at::Tensor>>;

State scaled(const Generator& generator, double factor, const std::string& suffix) {
  State state = generator.parameters();
  for (auto& [name, value] : state) {
    value = value.detach().clone();
    if (name.ends_with(suffix)) value.mul_(factor);
  }
  return state;
}

double distance(const Generator& a, const Generator& b, const LatentBatch& draw) {
  return (a.forward(draw) - b.forward(draw)).abs().max().item<double>();
}

// Images above 32 pixels: gamma and beta of a mixture are the weighted sums over its labels. All
// classes start with gamma 1 and beta 0, so mixing changes nothing at first; the published average
// then acts like gammas of 1 / K, on superposed samples only.
TEST(Generator, ConditionalNormalisationTakesTheWeightedSum) {
  const auto model = teacher(36, 6, 8);
  GeneratorOptions options;
  options.superposed_share = 1;
  options.superposed_labels = 4;
  const Generator sum(model, options, 0);
  options.conditional_mix_average = true;
  const Generator average(model, options, 0);
  Generator quarter(model, {}, 0);
  quarter.load(scaled(sum, 0.25, ".gamma"));
  const auto mixed = sum.draw(8, 0);
  EXPECT_LT(distance(average, quarter, mixed), 1e-3);
  EXPECT_GT(distance(average, sum, mixed), 1e-2);

  options.superposed_share = 0;
  const auto single = Generator(model, options, 0).draw(8, 0);
  EXPECT_EQ(single.targets.count_nonzero().item<std::int64_t>(), 8);
  EXPECT_EQ(distance(average, sum, single), 0);

  // With one gamma per class, an image moves between those of its labels.
  auto state = sum.parameters();
  for (auto& [name, value] : state) {
    value = value.detach().clone();
    if (name == "norm2.gamma") value[1].mul_(3);
  }
  Generator uneven(model, options, 0);
  uneven.load(state);
  Generator even(model, options, 0);
  auto draw = single;
  draw.targets = at::zeros({8, 6});
  draw.targets.select(1, 0).fill_(0.5);
  draw.targets.select(1, 1).fill_(0.5);  // gamma 0.5 * 1 + 0.5 * 3 = 2
  even.load(scaled(sum, 2, "norm2.gamma"));
  EXPECT_LT(distance(uneven, even, draw), 1e-3);
}

TEST(Generator, HalfPrecisionGivesNearlyTheSameImagesAndGradients) {
  for (const std::int64_t size : {16, 36}) {
    const auto model = teacher(size, 10, 12);
    const Generator exact(model, {}, 0), half(model, {}, 0);
    const auto draw = exact.draw(16, 0);
    const auto a = exact.forward(draw), b = half.forward(draw, Precision::bf16);
    EXPECT_EQ(b.scalar_type(), at::kFloat);
    EXPECT_LT((a - b).square().mean().item<double>(), 1e-2);  // images have variance 1
    const auto upstream = at::rand_like(a);
    (a * upstream).sum().backward();
    (b * upstream).sum().backward();
    const auto g = named(exact).at("conv1.weight").grad().flatten(),
               h = named(half).at("conv1.weight").grad().flatten();
    EXPECT_EQ(h.scalar_type(), at::kFloat);
    EXPECT_GT((g.dot(h) / (g.norm() * h.norm())).item<double>(), 0.95);
  }
}

TEST(Generator, SeedDecidesTheWeights) {
  const auto model = teacher(16, 10, 12);
  const auto a = named(Generator(model, {}, 3)), b = named(Generator(model, {}, 3)),
             c = named(Generator(model, {}, 4));
  EXPECT_TRUE(a.at("conv1.weight").equal(b.at("conv1.weight")));
  EXPECT_FALSE(a.at("conv1.weight").equal(c.at("conv1.weight")));
}

TEST(Generator, StateComesBackBitForBit) {
  const auto model = teacher(16, 10, 12);
  const Generator trained(model, {}, 3);
  Generator other(model, {}, 4);
  other.load(trained.parameters());
  const auto draw = trained.draw(4, 0);
  EXPECT_TRUE(trained.forward(draw).equal(other.forward(draw)));

  auto state = trained.parameters();
  state[0].first = "unknown";
  EXPECT_THROW(other.load(state), Error);
  state.pop_back();
  EXPECT_THROW(other.load(state), Error);
}

void expect_unsupported(const models::Model& model) {
  try {
    const Generator generator(model, {}, 0);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
  }
}

TEST(Generator, NamesWhatItCannotServe) {
  auto headless = teacher(16, 10, 12);
  headless.classes = 11;
  expect_unsupported(headless);
}

}  // namespace
}  // namespace zsq::generator
