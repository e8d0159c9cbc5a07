// SPDX-License-Identifier: Apache-2.0
// How single images are made: optimised against the teacher (ZeroQ 2001.00281, IntraQ 2111.09136,
// HAST 2303.13826), or drawn (generator/draw_images.h). Torch-free; recipe keys
// "generate.images.*".
#pragma once
#include <cstdint>

#include "core/settings.h"
#include "models/precision.h"

namespace zsq {

enum class RateSchedule { cosine, plateau, constant };

template <>
struct EnumNames<RateSchedule> {
  static constexpr std::array<std::string_view, 3> names{"cosine", "plateau", "constant"};
};

enum class ImageStatistics { moments, normalised };

template <>
struct EnumNames<ImageStatistics> {
  static constexpr std::array<std::string_view, 2> names{"moments", "normalised"};
};

enum class ImageSource { optimised, drawn };

template <>
struct EnumNames<ImageSource> {
  static constexpr std::array<std::string_view, 2> names{"optimised", "drawn"};
};

struct ImageOptions {
  ImageSource source = ImageSource::optimised;
  std::int64_t batch_size = 64;
  std::int64_t steps = 500;
  double lr = 0.1;
  RateSchedule schedule = RateSchedule::cosine;
  double bns_weight = 1;  // lambda of CE + lambda * L_BNS
  ImageStatistics statistics = ImageStatistics::moments;
  double hardness = 0;         // gamma of the weight (1 - p_y)^gamma
  double augment_share = 0.5;  // of the images of a batch
  double crop_scale = 0.5;     // smallest share of the area that a crop keeps
  bool flip = true;
  bool swing = false;
  double low_pass = 0;  // D0; 0: none
  Precision precision = Precision::fp32;
};

template <class Visitor, class Options>
void visit_image_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"generate.images.source",
                    "of images for blocks, for quantize.weights.rounding=hessian and for zsq "
                    "generate: optimised against the network, or random shapes, drawn at once"},
        o.source);
  visit(SettingInfo{"generate.images.batch_size",
                    "images that are optimised together, and whose moments are compared", "images",
                    2, 65536},
        o.batch_size);
  visit(SettingInfo{"generate.images.steps", "Adam steps per batch of images", "", 0, 1e6},
        o.steps);
  visit(SettingInfo{"generate.images.lr", "Adam learning rate of the pixels", "", 0, 10}, o.lr);
  visit(SettingInfo{"generate.images.schedule",
                    "of that rate; plateau: a tenth where the loss has not fallen for steps / 20"},
        o.schedule);
  visit(SettingInfo{"generate.images.bns_weight", "weight of the BatchNorm-statistics loss", "", 0,
                    1e6},
        o.bns_weight);
  visit(SettingInfo{"generate.images.statistics",
                    "that loss on moments, or on moments in units of each channel's deviation"},
        o.statistics);
  visit(SettingInfo{"generate.images.hardness",
                    "gamma: an image counts (1 - p)^gamma, p its label's probability", "", 0, 10,
                    "HAST"},
        o.hardness);
  visit(
      SettingInfo{"generate.images.augment_share",
                  "share of a batch that the teacher sees cropped and flipped", "", 0, 1, "IntraQ"},
      o.augment_share);
  visit(SettingInfo{"generate.images.crop_scale", "smallest share of the area that a crop keeps",
                    "", 0.01, 1},
        o.crop_scale);
  visit(SettingInfo{"generate.images.flip", "mirror half of the cropped images"}, o.flip);
  visit(SettingInfo{"generate.images.swing",
                    "shift what enters strided convolutions by chance, fewer checkerboards", "", 0,
                    0, "Genie"},
        o.swing);
  visit(SettingInfo{"generate.images.low_pass",
                    "cut-off of a Gaussian low-pass on the finished images; 0: none",
                    "periods per image", 0, 1e4, "SynQ"},
        o.low_pass);
  visit(SettingInfo{"generate.images.precision", "of the teacher that they are optimised against"},
        o.precision);
}

}  // namespace zsq
