// SPDX-License-Identifier: Apache-2.0
// From what a network takes back to pixels and files.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "eval/preprocess.h"

namespace zsq::eval {
namespace {

// Every byte value somewhere, all channels different.
Image gradients() {
  Image image{32, 32, std::vector<std::uint8_t>(32 * 32 * 3)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(i * (i % 3 + 1) / 2);
  return image;
}

TEST(Encode, PixelsComeBackFromWhatANetworkTakes) {
  for (const char* name : {"cifar10", "cifar100"}) {
    const Preprocessing known = resolve({.preset = name}, {32, 32});
    const Image back = to_pixels(preprocess(gradients(), known, "x"), known);
    EXPECT_EQ(back.height, 32);
    EXPECT_EQ(back.pixels, gradients().pixels) << name;
  }
}

TEST(Encode, WhatNoPixelCanBeBecomesTheNearest) {
  const Preprocessing cifar = resolve({.preset = "cifar10"}, {1, 1});
  EXPECT_EQ(to_pixels(at::full({3, 1, 1}, 99.0), cifar).pixels,
            (std::vector<std::uint8_t>{255, 255, 255}));
  EXPECT_EQ(to_pixels(at::full({3, 1, 1}, -99.0), cifar).pixels,
            (std::vector<std::uint8_t>{0, 0, 0}));
}

TEST(Encode, PngKeepsEveryPixel) {
  const Image back = decode_image(encode_png(gradients()), "x");
  EXPECT_EQ(back.width, 32);
  EXPECT_EQ(back.pixels, gradients().pixels);
}

}  // namespace
}  // namespace zsq::eval
