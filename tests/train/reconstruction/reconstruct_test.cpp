// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/reconstruct.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/load.h"
#include "quant/fold_batch_norm.h"
#include "quant/level_table.h"
#include "quant/paired_blocks.h"
#include "tests/support/network_builder.h"
#include "tests/support/networks.h"
#include "tests/support/temp_folder.h"
#include "tests/train/reconstruction/prepared.h"
#include "train/reconstruction/reconstruct_block.h"

namespace zsq::train {
namespace {

TEST(Reconstruct, EveryBlockGains) {
  for (const auto& quant : {bits(4, 4), bits(2, 4), bits(2, 2)}) {
    Prepared p(test::residual_network(), quant);
    const auto unseen = noise(p.teacher, 32, 4);
    const auto wanted = models::execute(p.teacher.graph, p.teacher.parameters, unseen);
    const auto off = [&] { return mean_squared_error(p.logits(unseen), wanted).item<double>(); };
    const double before = off();
    const auto scale = [&](const std::string& layer) {
      return p.student.parameters.at(layer + ".weight_quantizer.scale").clone();
    };
    const auto first = scale("stem"), second = scale("a");
    const auto report = p.run(short_run());
    ASSERT_EQ(report.blocks.size(), 4U);  // stem, residual block, convolution, classifier
    EXPECT_EQ(report.blocks[1].name, "relu");
    EXPECT_EQ(report.blocks[1].iterations, 60);
    expect_every_block_gains(report);
    EXPECT_TRUE(scale("stem").equal(first));  // 8 bits
    EXPECT_FALSE(scale("a").equal(second));
    EXPECT_LT(off(), before);
    // What the last block says is true of the whole network.
    const auto on_images = models::execute(p.teacher.graph, p.teacher.parameters, p.images);
    const double power = on_images.square().mean().item<double>();
    EXPECT_NEAR(report.blocks.back().after,
                mean_squared_error(p.logits(p.images), on_images).item<double>() / power,
                1e-5 * report.blocks.back().after);
    expect_decided(p.student);
  }
}

// The codes are levels of the tables; scales have learned with them.
TEST(Reconstruct, LearnsBetweenLevelsOfTables) {
  for (const auto rounding : {WeightRounding::nearest, WeightRounding::squant}) {
    auto quant = bits(4, 4);
    quant.weights.level_tables = {LevelTable::normal, LevelTable::learned};
    quant.weights.rounding = rounding;
    Prepared p(test::residual_network(), quant);
    const auto levels = [&](const quant::WeightSite& site) {
      return quant::level_grids(*site.op, p.student.parameters);
    };
    const auto before = p.student.parameters.clone();
    expect_every_block_gains(p.run(short_run()));
    expect_decided(p.student);
    int tables = 0;
    for (const auto& site : quant::weight_sites(p.student)) {
      const auto grids = levels(site);
      if (!grids.levels.defined()) continue;
      const auto steps =
          p.student.parameters.at(site.parameter).div(grids.scale.view({-1, 1, 1, 1}));
      const auto distance = steps.flatten(1).unsqueeze(2).sub(grids.levels.unsqueeze(1)).abs();
      EXPECT_LT(std::get<0>(distance.min(2)).max().item<float>(), 1e-4) << site.parameter;
      EXPECT_FALSE(grids.scale.equal(before.at(site.op->scale_name())));
      const auto start =
          before.at(site.parameter).div(before.at(site.op->scale_name()).view({-1, 1, 1, 1}));
      EXPECT_GE(steps.sub(start).abs().max().item<float>(), 1) << site.parameter;
      ++tables;
    }
    EXPECT_EQ(tables, 3);
  }
}

// With the uniform grid as the only table the same is learned as without tables.
TEST(Reconstruct, OnEvenLevelsIsThatOnTheUniformGrid) {
  auto quant = bits(4, 4);
  Prepared uniform(test::residual_network(), quant);
  quant.weights.level_tables = {LevelTable::integer};
  Prepared table(test::residual_network(), quant);
  uniform.run(short_run());
  table.run(short_run());
  const auto unseen = noise(uniform.teacher, 8, 4);
  EXPECT_TRUE(table.logits(unseen).allclose(uniform.logits(unseen), 1e-4, 1e-5));
}

// BatchNorm beta and biases move where they may, and nowhere else.
TEST(Reconstruct, BiasesLearnWhereTheyMay) {
  for (const double lr : {0.0, 0.2}) {
    Prepared p(test::residual_network(), bits(2, 4));
    auto options = short_run();
    options.bias_lr = lr;
    expect_every_block_gains(p.run(options));
    for (const auto& [name, bias] : biases_of(p.student.graph, p.student.parameters)) {
      EXPECT_EQ(bias.equal(p.teacher.parameters.at(name)), lr == 0) << name;
      EXPECT_FALSE(bias.requires_grad());
    }
  }
}

// Four steps begin at shares 0, 1/4, 1/2 and 3/4 of the run.
TEST(Reconstruct, ScalesAndBiasesBeginLate) {
  for (const double start : {0.5, 0.9}) {
    Prepared p(test::residual_network(), bits(2, 4));
    auto options = short_run();
    options.iterations = 4;
    options.bias_lr = 0.2;
    options.scale_start = start;
    const auto scales = learnable_scales(p.student, LearnableScales::all);
    std::vector<at::Tensor> before;
    for (const auto& name : scales) before.push_back(p.student.parameters.at(name).clone());
    p.run(options);
    std::size_t i = 0, moved = 0;
    for (const auto& name : scales) moved += !p.student.parameters.at(name).equal(before[i++]);
    for (const auto& [name, bias] : biases_of(p.student.graph, p.student.parameters))
      moved += !bias.equal(p.teacher.parameters.at(name));
    EXPECT_EQ(moved > 0, start < 0.75) << moved;
  }
}

TEST(Reconstruct, IsDeterministic) {
  Prepared a(test::residual_network(), bits(3, 3)), b(test::residual_network(), bits(3, 3));
  a.run(short_run());
  b.run(short_run());
  expect_equal(a.student.parameters, b.student.parameters);
}

// The student of an equalised network has other values between its layers, but the same logits.
TEST(Reconstruct, FollowsTheEqualisedNetwork) {
  auto quant = bits(3, 8);
  quant.equalize = Equalization::all;
  Prepared p(test::residual_network(), quant);
  for (const auto& block : p.run(short_run()).blocks) EXPECT_LT(block.before, 0.1) << block.name;
}

// 3 x 64 x 64 pixels in, 8 x 64 x 64 values out, each twice, 2 bytes: 176 KiB an image in the first
// block of two, and room for 5 in a MiB.
models::Model wide_network() {
  test::NetworkBuilder net({3, 64, 64});
  auto x = net.conv_bn_relu("a", net.input(), 3, 8);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  return net.finish(net.linear("fc", net.op("flatten", models::Flatten{}, {x}), 8, 4), 4);
}

TEST(Reconstruct, LearnsTheSameFromValuesInAFile) {
  struct Listener : Observer {
    void on_message(LogLevel, const std::string& text) override { texts.push_back(text); }
    std::vector<std::string> texts;
  };
  const test::TempFolder folder;
  const auto run = [&](std::int64_t memory, const std::filesystem::path& where) {
    auto quant = bits(2, 2);
    quant.first_last_bits = 0;
    auto p = std::make_unique<Prepared>(wide_network(), quant, 6);
    auto options = short_run();
    options.memory = memory;
    options.entry_statistics = true;  // written in place
    auto job = p->job(options);
    job.folder = where;
    Listener listener;
    reconstruct(job, listener);
    return std::pair(std::move(p), listener.texts);
  };
  const auto none = folder / "none";
  const auto [in_memory, silence] = run(2, none);  // for 11 images in bfloat16, for 5 in float
  EXPECT_TRUE(silence.empty());
  const auto [in_file, said] = run(1, folder.path());
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("1 of 2 blocks have values of up to 2 MiB"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("reconstruct.memory=2"), std::string::npos) << said[0];
  expect_equal(in_memory->student.parameters, in_file->student.parameters);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THROW(run(1, none), Error);
}

// Values in between rounded to 8 bits of mantissa: another result, and as much of a gain.
TEST(Reconstruct, GainsFromValuesInBfloat16) {
  double after[2];
  for (const std::int64_t memory : {1, 64}) {
    Prepared p(test::residual_network(), bits(2, 4), 60);
    const auto unseen = noise(p.teacher, 32, 4);
    const auto wanted = models::execute(p.teacher.graph, p.teacher.parameters, unseen);
    const auto off = [&] { return mean_squared_error(p.logits(unseen), wanted).item<double>(); };
    const double before = off();
    auto options = short_run();
    options.memory = memory;
    p.run(options);
    after[memory > 1] = off();
    EXPECT_LT(after[memory > 1], 0.5 * before);
  }
  EXPECT_NE(after[0], after[1]);
}

// Blocks that read what BatchNorm statistics imply gain there, and in the network as a whole.
TEST(Reconstruct, LearnsFromEntriesWithTheKnownStatistics) {
  Prepared p(test::residual_network(), bits(2, 4));
  const auto wanted = models::execute(p.teacher.graph, p.teacher.parameters, p.images);
  const auto off = [&] { return mean_squared_error(p.logits(p.images), wanted).item<double>(); };
  const double before = off();
  auto options = short_run();
  options.entry_statistics = true;
  expect_every_block_gains(p.run(options));
  EXPECT_LT(off(), before);
}

// Convolutions "b" and "c" share a weight, and "b1" and "b2" of one residual block.
models::Model sharing_network() {
  test::NetworkBuilder net;
  auto x = net.conv_bn_relu("a", net.input(), 3, 8);
  const auto conv = [&](const std::string& name, const std::string& weight) {
    x = net.op(name, models::Conv2d{.pads = {1, 1, 1, 1}}, {x}, {{"weight", weight}});
    return x = net.relu(name + ".relu", net.batch_norm(name + ".bn", x, 8));
  };
  x = net.conv_bn_relu("b", x, 8, 8);
  conv("c", "b.weight");
  const auto entry = x;
  x = net.conv_bn_relu("b1", x, 8, 8);
  conv("b2", "b1.weight");
  x = net.op("add", models::Add{}, {x, entry});
  x = net.op("pool", models::GlobalAvgPool{}, {net.relu("relu", x)});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 8, 10));
}

// Else a later block would undo what an earlier one found. Each block's report holds for the
// student as it is in the end.
TEST(Reconstruct, AWeightThatLayersShareIsDecidedOnce) {
  Prepared p(sharing_network(), bits(2, 4));
  const auto report = p.run(short_run());
  expect_decided(p.student);
  const quant::PairedBlocks pair(p.teacher, p.student);
  ASSERT_EQ(report.blocks.size(), pair.blocks().size());
  auto wanted = p.images, given = p.images;
  for (std::size_t i = 0; i < report.blocks.size(); ++i) {
    const auto& block = pair.blocks()[i];
    const at::NoGradGuard no_grad;
    wanted =
        quant::run_part(pair.teachers_part(block.entry, block.exit), p.teacher.parameters, wanted);
    const auto part = pair.students_part(block.entry, pair.students_node(block.exit));
    given = quant::run_part(quant::fuse_activations(part), p.student.parameters, given);
    const double error =
        mean_squared_error(given, wanted).item<double>() / wanted.square().mean().item<double>();
    EXPECT_NEAR(report.blocks[i].after, error, 1e-4 * error) << report.blocks[i].name;
    EXPECT_LE(report.blocks[i].after, report.blocks[i].before);
  }
  EXPECT_LT(report.blocks[3].after, report.blocks[3].before);
}

TEST(Reconstruct, RealNetworkGainsInEveryBlock) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  Prepared p(models::load(test::network_path("resnet20_padded.onnx")), bits(2, 4));
  auto options = short_run();
  options.iterations = 12;
  const auto report = p.run(options);
  ASSERT_EQ(report.blocks.size(), 11U);
  // The first and the last one have 8 bits: hardly anything to gain.
  for (std::size_t i = 1; i < 10; ++i)
    EXPECT_LT(report.blocks[i].after, report.blocks[i].before) << report.blocks[i].name;
  expect_decided(p.student);
}

}  // namespace
}  // namespace zsq::train
