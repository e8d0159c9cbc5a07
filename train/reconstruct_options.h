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
  std::int64_t views = 1;
  std::int64_t batch_size = 32;
  double drop = 0.5;
  double rounding_travel = 10;
  double scale_travel = 1;
  double bias_travel = 0;
  double rounding_weight = 0.1;
  double warmup = 0.2;
  double sharpness_start = 20, sharpness_end = 2;
  std::int64_t memory = 2048;
};

template <class Visitor, class Options>
void visit_reconstruct_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"reconstruct.iterations",
                    "steps per block that learn its rounding and scales; 0: none", "", 0, 1e7,
                    "BRECQ, Genie-M"},
        o.iterations);
  visit(SettingInfo{"reconstruct.images",
                    "images that blocks learn on: of generate.bank, or made by generate.images",
                    "images", 1, 1e6},
        o.images);
  visit(SettingInfo{"reconstruct.views",
                    "of each image: itself and, from 2 on, crops and flips as generate.images has "
                    "them",
                    "", 1, 1000},
        o.views);
  visit(SettingInfo{"reconstruct.batch_size", "images per step", "images", 1, 65536}, o.batch_size);
  visit(SettingInfo{"reconstruct.drop",
                    "chance that a value stays as in the float network, at a block's input and at "
                    "each activation quantizer",
                    "", 0, 1, "QDrop"},
        o.drop);
  visit(
      SettingInfo{"reconstruct.rounding_travel",
                  "how far what decides the rounding can go in a run: the rate of Adam is its part "
                  "for a step, whatever their number",
                  "", 0, 1e4, "AdaRound"},
      o.rounding_travel);
  visit(SettingInfo{"reconstruct.scale_travel",
                    "the same for logarithms of scales below 8 bits, the rate falling as a cosine",
                    "", 0, 100, "Genie-M"},
        o.scale_travel);
  visit(SettingInfo{"reconstruct.bias_travel",
                    "the same for BatchNorm beta and biases; 0: they stay", "", 0, 100},
        o.bias_travel);
  visit(SettingInfo{"reconstruct.rounding_weight",
                    "of undecided rounding, against the block's error at the start as 1", "", 0,
                    1e6, "AdaRound"},
        o.rounding_weight);
  visit(SettingInfo{"reconstruct.warmup", "share of the steps in which rounding may stay undecided",
                    "", 0, 1},
        o.warmup);
  visit(SettingInfo{"reconstruct.sharpness_start",
                    "exponent b of that cost after the warm-up, from where it falls", "", 1, 100},
        o.sharpness_start);
  visit(SettingInfo{"reconstruct.sharpness_end", "b at the end", "", 1, 100}, o.sharpness_end);
  visit(SettingInfo{"reconstruct.memory",
                    "for the values between blocks; takes fewer images where they need more", "MiB",
                    1, 1e7},
        o.memory);
}

}  // namespace zsq
