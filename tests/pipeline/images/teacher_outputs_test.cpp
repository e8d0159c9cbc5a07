// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/teacher_outputs.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "formats/safetensors.h"
#include "models/load.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"
#include "train/agreement.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

class TeacherOutputs : public testing::Test {
 protected:
  void SetUp() override { setenv("ZSQ_CACHE", (folder_ / "cache").c_str(), 1); }
  void TearDown() override { unsetenv("ZSQ_CACHE"); }

  at::Tensor computed() const {
    return train::logits_of(teacher_.graph, teacher_.parameters, images_);
  }
  at::Tensor given() const { return teacher_outputs(teacher_, "sha256 of the file", images_); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache")) found.push_back(entry);
    return found;
  }
  // The one file, with `change` done to what it holds.
  void rewrite(const std::function<void(at::Tensor&)>& change) const {
    const auto path = files().at(0);
    auto outputs =
        models::to_tensor(*formats::find(formats::read_safetensors(path).tensors, "outputs"));
    change(outputs);
    formats::write_safetensors(path, {{{"outputs", models::to_array(outputs)}}, {}});
  }

  test::TempFolder folder_;
  models::Model teacher_ = test::residual_network();
  at::Tensor images_ = [this] {
    const auto [c, h, w] = teacher_.graph.input_shape;
    return test::normal({6, c, h, w}, 1);
  }();
};

TEST_F(TeacherOutputs, AreKeptToTheBit) {
  const auto first = given();
  EXPECT_TRUE(first.equal(computed()));
  EXPECT_EQ(files().size(), 1U);
  EXPECT_TRUE(given().equal(first));
  // Those of the file, and not computed again.
  rewrite([](at::Tensor& outputs) { outputs.narrow(0, 1, 5).add_(1); });
  EXPECT_TRUE(given().narrow(0, 1, 5).equal(first.narrow(0, 1, 5) + 1));
}

TEST_F(TeacherOutputs, OfAnotherTeacherAreComputed) {
  given();
  teacher_.parameters.at(teacher_.parameters.names().front()).mul_(1.5);
  EXPECT_TRUE(given().equal(computed()));
}

TEST_F(TeacherOutputs, OfOtherImagesHaveAFileOfTheirOwn) {
  given();
  images_[5].add_(1);
  EXPECT_TRUE(given().equal(computed()));
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(TeacherOutputs, OfADamagedFileOrAnotherShapeAreComputed) {
  const auto first = given();
  rewrite([](at::Tensor& outputs) { outputs = outputs.narrow(1, 0, 2).contiguous(); });
  EXPECT_TRUE(given().equal(first));
  std::ofstream(files().at(0), std::ios::trunc) << "no tensors";
  EXPECT_TRUE(given().equal(first));
  fs::remove_all(folder_ / "cache");
  std::ofstream(folder_ / "cache") << "in the place of the folder";
  EXPECT_TRUE(given().equal(first));
}

}  // namespace
}  // namespace zsq::pipeline
