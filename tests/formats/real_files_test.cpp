// SPDX-License-Identifier: Apache-2.0
// The readers on files that PyTorch, NumPy and two ONNX exporters wrote.
#include <gtest/gtest.h>

#include "formats/npy.h"
#include "formats/onnx.h"
#include "formats/pth.h"
#include "formats/safetensors.h"
#include "tests/support/shared.h"

namespace zsq::formats {
namespace {

void expect_equal(const NamedArrays& got, const NamedArrays& truth) {
  EXPECT_EQ(got.size(), truth.size());
  for (const auto& [name, array] : truth) {
    const Array* found = find(got, name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->dtype, array.dtype) << name;
    EXPECT_EQ(found->shape, array.shape) << name;
    EXPECT_TRUE(found->data == array.data) << name;
  }
}

TEST(RealFiles, FourContainersHoldTheSameTensors) {
  const auto folder = test::shared_path("importer");
  ZSQ_SKIP_WITHOUT(folder);
  const NamedArrays truth = read_safetensors(folder / "resnet20_random.safetensors").tensors;
  ASSERT_EQ(truth.size(), 128u);
  expect_equal(read_pth(folder / "resnet20_random.pth"), truth);
  expect_equal(read_pth(folder / "resnet20_random.legacy.pth"), truth);
}

TEST(RealFiles, LegacyCheckpointEqualsItsSafetensors) {
  const auto folder = test::shared_path("models");
  ZSQ_SKIP_WITHOUT(folder);
  const auto file = read_safetensors(folder / "resnet20_cifar10.safetensors");
  EXPECT_EQ(file.metadata.at("num_classes"), "10");
  for (const auto& [name, array] : read_pth(folder / "resnet20-12fca82f.th")) {
    const Array* found = find(file.tensors, name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->shape, array.shape) << name;
    EXPECT_TRUE(found->data == array.data) << name;
  }
}

}  // namespace
}  // namespace zsq::formats
