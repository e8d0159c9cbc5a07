// SPDX-License-Identifier: Apache-2.0
#include "core/nearest_name.h"

#include <gtest/gtest.h>

namespace zsq {
namespace {

TEST(NearestName, FindsTheLikelyMisspelling) {
  const std::vector<std::string> known = {"resnet18", "resnet20", "mobilenet_v2"};
  EXPECT_EQ(nearest_name("resnet21", known), "resnet20");  // one letter; resnet18 is two away
  EXPECT_EQ(nearest_name("mobilnet_v2", known), "mobilenet_v2");
  EXPECT_EQ(nearest_name("resnet18", known), "resnet18");
  EXPECT_EQ(nearest_name("vgg", known), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

// Who stopped typing too early meant what begins so, not what is as long.
TEST(NearestName, PrefersANameThatBeginsWithIt) {
  EXPECT_EQ(nearest_name("images.mixup", {"images.flip", "images.mixup_share"}),
            "images.mixup_share");
}

// One third of the longer length is still close enough, more is not.
TEST(NearestName, DistanceLimit) {
  EXPECT_EQ(nearest_name("abx", {"abc"}), "abc");
  EXPECT_EQ(nearest_name("axx", {"abc"}), "");
}

TEST(NearestName, MessageNamesTheGuessAndAllKnown) {
  EXPECT_EQ(unknown_name_message("loss", "klx", {"kl", "ce"}),
            "'klx' is not a loss; did you mean 'kl'? Known: kl, ce");
  EXPECT_EQ(unknown_name_message("loss", "quantile", {"kl", "ce"}),
            "'quantile' is not a loss. Known: kl, ce");
  EXPECT_EQ(unknown_name_message("architecture", "x", {}), "'x' is not an architecture. Known:");
}

}  // namespace
}  // namespace zsq
