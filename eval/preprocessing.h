// SPDX-License-Identifier: Apache-2.0
// Preprocessing with every key known, and its record in files. No torch, no OpenCV.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "eval/preprocessing_options.h"

namespace zsq::eval {

struct Preprocessing {
  std::string name;  // of the preset or file that it began with; empty: none
  ImageSize size;
  CropOrder crop_order = CropOrder::resize_then_crop;
  std::int64_t resize = 0;   // 0: follows from crop_fraction
  double crop_fraction = 1;  // where resize is 0
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;
  Resizer resizer = Resizer::pillow;
  std::array<double, 2> value_range{0, 1};
  // Of the network's channels, in their order: 3 of them, 1 (grey) or, where no image file is read
  // or written, any number.
  std::vector<double> mean{0, 0, 0}, std{1, 1, 1};
  ChannelOrder channel_order = ChannelOrder::rgb;  // of 3 channels
  Decoder decoder = Decoder::opencv;
  ChromaSubsampling chroma_subsampling = ChromaSubsampling::none;
  std::uint8_t letterbox_grey = 114;  // Ultralytics' YOLO; of masks 0

  std::int64_t channels() const { return static_cast<std::int64_t>(mean.size()); }
  // What the network's channel c receives for a pixel of 0 to 255, the lowest and highest of it
  // over all channels, and the share (pixel / 255) that a value stands for.
  double value(double pixel, std::size_t c) const;
  std::pair<double, double> value_limits() const;
  double share(double value, std::size_t c) const;
};

// A preset, or any key.
bool is_given(const PreprocessingOptions& options);

// The keys of `given` over those of its preset, the rest as their help says; `own` is the model's
// input size, `channels` the number of its channels (0: as many as means where every key is given,
// else 3). Where every key is given, a preset that is a file is not opened. Error(usage) says
// what to give where nothing is or mean and std are unknown, which keys contradict each other, and
// where mean or std are of other channels than the network's; errors of preset().
Preprocessing resolve(const PreprocessingOptions& given, const ImageSize& own,
                      std::int64_t channels = 0);

// The keys of `over` in place of those of `base`.
PreprocessingOptions overlay(PreprocessingOptions base, const PreprocessingOptions& over);

// Every key given.
PreprocessingOptions to_options(const Preprocessing& preprocessing);

// A JSON object with a member per key that is given, named as the key without "data."; one line.
// from_json: Error(bad_input) names `where`, the key, what was found and what was expected.
std::string to_json(const PreprocessingOptions& options);
PreprocessingOptions from_json(const std::string& text, const std::string& where);

}  // namespace zsq::eval
