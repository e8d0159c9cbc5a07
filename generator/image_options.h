// SPDX-License-Identifier: Apache-2.0
// How single images are made: optimised against the teacher (ZeroQ 2001.00281, IntraQ 2111.09136,
// HAST 2303.13826), alone or with a generator for each batch (Genie 2212.04780,
// train/images/genie_images.h), procedurally generated (generator/dead_leaves.h, scenes.h), or by
// one generator (settings "generate.*", train/images/generator_images.h). Torch-free; recipe keys
// "generate.images.*".
#pragma once
#include <cstdint>

#include "core/settings.h"
#include "generator/statistics_options.h"
#include "models/precision.h"

namespace zsq {

enum class RateSchedule { cosine, plateau, constant };

template <>
struct EnumNames<RateSchedule> {
  static constexpr std::array<std::string_view, 3> names{"cosine", "plateau", "constant"};
};

enum class MomentsOver { batch, all_batches };

template <>
struct EnumNames<MomentsOver> {
  static constexpr std::array<std::string_view, 2> names{"batch", "all_batches"};
};

enum class ImageSource { optimised, dead_leaves, generator, genie, mixture, scenes };

template <>
struct EnumNames<ImageSource> {
  static constexpr std::array<std::string_view, 6> names{"optimised", "dead_leaves", "generator",
                                                         "genie",     "mixture",     "scenes"};
};

enum class ImageStart { noise, dead_leaves };

template <>
struct EnumNames<ImageStart> {
  static constexpr std::array<std::string_view, 2> names{"noise", "dead_leaves"};
};

struct ImageOptions {
  ImageSource source = ImageSource::optimised;
  ImageStart start = ImageStart::noise;
  std::int64_t batch_size = 64;
  std::int64_t steps = 500;
  double lr = 0.1;
  RateSchedule schedule = RateSchedule::cosine;
  double decay_power = 0;      // of the amplitudes of the steps of pixels
  double generator_lr = 0.01;  // of the weights of genie
  double cross_entropy_weight = 1;
  double bns_weight = 1;  // lambda of CE + lambda * L_BNS
  StatisticsOptions statistics;
  MomentsOver moments_over = MomentsOver::batch;
  double focal_gamma = 0;      // gamma of the weight (1 - p_y)^gamma
  double augment_share = 0.5;  // of the images of a batch
  bool flip = true;
  // Of what learning takes: views with a part of another image.
  double mixup_share = 0, cutmix_share = 0;
  bool swing_convolution = false;
  double low_pass_cutoff = 0;  // D0; 0: none
  Precision precision = Precision::fp32;
};

template <class Visitor, class Options>
void visit_image_optimisation_settings(Visitor&& visit, Options& o) {
  visit(
      SettingInfo{"generate.images.steps",
                  "Adam steps per batch of images, or iterations of the one generator", "", 0, 1e6},
      o.steps);
  visit(SettingInfo{"generate.images.lr",
                    "Adam learning rate of the pixels, or of the latents of genie", "", 0, 10},
        o.lr);
  visit(SettingInfo{"generate.images.decay_power",
                    "what moves pixels has amplitudes of 1 / f^this, f in periods per image (those "
                    "of photographs fall as 1 / f); 0: all alike",
                    "", 0, 3, "Feature Visualization, doi 10.23915/distill.00007"},
        o.decay_power);
  visit(SettingInfo{"generate.images.schedule",
                    "schedule of that rate; plateau: divided by 10 if the loss has not fallen for "
                    "steps / 20"},
        o.schedule);
  visit(SettingInfo{"generate.images.generator_lr",
                    "Adam learning rate of the weights of genie; times 0.95 forty times in a run",
                    "", 0, 10, "Genie"},
        o.generator_lr);
  visit(SettingInfo{"generate.images.cross_entropy_weight",
                    "weight of the cross-entropy to the sampled labels; 0: none, and images have "
                    "the labels that the network predicts",
                    "", 0, 1e6},
        o.cross_entropy_weight);
  visit(SettingInfo{"generate.images.bns_weight", "weight of the BatchNorm-statistics loss", "", 0,
                    1e6},
        o.bns_weight);
  visit_statistics_settings(visit,
                            {"generate.images.statistics", "generate.images.bns_shallow_weight",
                             "generate.images.bns_deep_weight"},
                            o.statistics);
  visit(SettingInfo{"generate.images.moments_over",
                    "the moments in that loss: of the batch, or of the batch and all finished "
                    "batches together",
                    "", 0, 0, "DGH"},
        o.moments_over);
}

template <class Visitor, class Options>
void visit_image_settings(Visitor&& visit, Options& o) {
  visit(
      SettingInfo{
          "generate.images.source",
          "images for reconstruction, finetune.images, quantize.weights.rounding=gptq and for zsq "
          "generate: optimised against the network, procedurally generated dead leaves, of "
          "a generator that is trained for them, optimised with a generator for each batch "
          "(genie), half dead leaves and half optimised (mixture), or half dead leaves and half "
          "objects on backgrounds, also procedurally generated (scenes)"},
      o.source);
  visit(SettingInfo{"generate.images.start",
                    "what optimised images start from: normal noise, or dead leaves, which fewer "
                    "steps and a smaller rate bring to the network's statistics"},
        o.start);
  visit(SettingInfo{"generate.images.batch_size",
                    "images that are made together, and whose moments are compared", "images", 2,
                    65536},
        o.batch_size);
  visit_image_optimisation_settings(visit, o);
  visit(
      SettingInfo{
          "generate.images.focal_gamma",
          "confident samples are down-weighted by (1 - p)^gamma, p: probability of the label", "",
          0, 10, "HAST"},
      o.focal_gamma);
  visit(SettingInfo{"generate.images.augment_share",
                    "share of a batch that is cropped and flipped before the teacher", "", 0, 1,
                    "IntraQ"},
        o.augment_share);
  visit(SettingInfo{"generate.images.flip", "mirror half of the cropped images"}, o.flip);
  visit(SettingInfo{"generate.images.mixup_share",
                    "share of the views that reconstruction and fine-tuning take of images to "
                    "which a random share of another image is added",
                    "", 0, 1, "mixup, arXiv 1710.09412"},
        o.mixup_share);
  visit(SettingInfo{"generate.images.cutmix_share",
                    "share of these views in which a random rectangle is of another image", "", 0,
                    1, "CutMix, arXiv 1905.04899"},
        o.cutmix_share);
  visit(SettingInfo{"generate.images.swing_convolution",
                    "swing convolution: random shifts of the inputs of strided convolutions", "", 0,
                    0, "Genie"},
        o.swing_convolution);
  visit(SettingInfo{"generate.images.low_pass_cutoff",
                    "cut-off of a Gaussian low-pass on the finished images; 0: none",
                    "periods per image", 0, 1e4, "SynQ"},
        o.low_pass_cutoff);
  visit(SettingInfo{"generate.images.precision",
                    "precision of the teacher that images are optimised against"},
        o.precision);
}

}  // namespace zsq
