// SPDX-License-Identifier: Apache-2.0
// Block reconstruction before fine-tuning (BRECQ 2102.05426, QDrop 2203.05740, Genie-M 2212.04780).
// Torch-free; recipe keys "reconstruct.*".
#pragma once
#include <cstdint>

#include "core/settings.h"

namespace zsq {

struct ReconstructOptions {
  std::int64_t iterations = 0;  // per block; 0: no reconstruction
  std::int64_t images = 1024;
  std::int64_t augmentations_per_image = 1;
  std::int64_t batch_size = 32;
  bool entry_statistics = false;
  double qdrop_probability = 0.5;
  double rounding_lr = 10;
  double scale_lr = 1;
  double bias_lr = 0;
  double scale_start = 0;
  double regularizer_weight = 0.1;
  double warmup = 0.2;
  double beta_start = 20, beta_end = 2;
  std::int64_t memory = 2048;
};

// How fast a block's parameters learn, and from when.
template <class Visitor, class Options>
void visit_reconstruction_rates(Visitor&& visit, Options& o) {
  visit(
      SettingInfo{"reconstruct.rounding_lr",
                  "learning rate of the rounding variables times the number of steps: Adam's rate "
                  "is this divided by the steps, so a run of any length can move them equally far",
                  "", 0, 1e4, "AdaRound"},
      o.rounding_lr);
  visit(SettingInfo{"reconstruct.scale_lr",
                    "the same for the logarithms of scales below 8 bits, with a cosine schedule; "
                    "none ends further than this from where it began",
                    "", 0, 100, "Genie-M"},
        o.scale_lr);
  visit(SettingInfo{"reconstruct.bias_lr",
                    "the same for BatchNorm beta and biases; 0: they are not trained", "", 0, 100},
        o.bias_lr);
  visit(SettingInfo{"reconstruct.scale_start",
                    "share of the steps after which scales and biases begin to learn; until then "
                    "only rounding does",
                    "", 0, 0.99},
        o.scale_start);
}

template <class Visitor, class Options>
void visit_reconstruct_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"reconstruct.iterations",
                    "steps per block that train its rounding and scales; 0: no reconstruction", "",
                    0, 1e7, "BRECQ, Genie-M"},
        o.iterations);
  visit(
      SettingInfo{"reconstruct.images",
                  "images for block reconstruction, from generate.bank or made by generate.images",
                  "images", 1, 1e6},
      o.images);
  visit(SettingInfo{"reconstruct.augmentations_per_image",
                    "variants of each image: the image itself and, from 2 on, crops and flips with "
                    "the settings of generate.images",
                    "", 1, 1000},
        o.augmentations_per_image);
  visit(SettingInfo{"reconstruct.batch_size", "images per step", "images", 1, 65536}, o.batch_size);
  visit(SettingInfo{"reconstruct.entry_statistics",
                    "scale what a block reads, channel by channel, to the mean and deviation that "
                    "BatchNorm statistics imply"},
        o.entry_statistics);
  visit(SettingInfo{"reconstruct.qdrop_probability",
                    "probability that a value stays unquantized, at a block's input and at each "
                    "activation quantizer",
                    "", 0, 1, "QDrop"},
        o.qdrop_probability);
  visit_reconstruction_rates(visit, o);
  visit(SettingInfo{"reconstruct.regularizer_weight",
                    "weight of the rounding regularizer, relative to the block's initial error", "",
                    0, 1e6, "AdaRound"},
        o.regularizer_weight);
  visit(SettingInfo{"reconstruct.warmup", "share of the steps without the rounding regularizer", "",
                    0, 1},
        o.warmup);
  visit(SettingInfo{"reconstruct.beta_start",
                    "exponent beta of the rounding regularizer after the warm-up; it is annealed",
                    "", 1, 100},
        o.beta_start);
  visit(SettingInfo{"reconstruct.beta_end", "exponent beta at the end", "", 1, 100}, o.beta_end);
  visit(
      SettingInfo{
          "reconstruct.memory",
          "memory for cached block inputs and outputs: in float or, where these need more, in "
          "bfloat16, and from fewer variants of each image; what then has no room lies in a file "
          "in the output folder (rounding uses fewer images)",
          "MiB", 1, 1e7},
      o.memory);
}

}  // namespace zsq
