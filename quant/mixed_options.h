// SPDX-License-Identifier: Apache-2.0
// Bits of each layer chosen under a budget. Torch-free; recipe keys "mixed.*".
#pragma once
#include <cstdint>
#include <string>

#include "core/settings.h"

namespace zsq {

// Written as 120kB, 0.6MB, 1.2G or 50%; 0: none.
struct Budget {
  double amount = 0;
  bool percent = false;
};

struct MixedOptions {
  Budget target_size, target_bops, target_cost;
  std::string cost_table;  // file; empty: none
  std::int64_t min_bits = 2, max_bits = 8;
  std::int64_t images = 64;
};

template <class Visitor, class Options>
void visit_mixed_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"mixed.target_size",
                    "largest size of the parameters (120kB, 0.6MB, 50% of FP32), for which each "
                    "layer's weights get bits of their own; 0: none",
                    "bytes", 0, 1e15},
        o.target_size);
  visit(SettingInfo{"mixed.target_bops",
                    "most bit operations of an image, MACs x weight bits x input bits (1.2G, 50% "
                    "of all in 8 bits), for which weights and inputs of each layer get bits of "
                    "their own; 0: none",
                    "bit operations", 0, 1e18},
        o.target_bops);
  visit(SettingInfo{"mixed.target_cost",
                    "largest sum of the costs in mixed.cost_table (12.5, 1.2M, 50% of all in "
                    "mixed.max_bits), for which each layer's weights get bits of their own; 0: "
                    "none",
                    "units of the table", 0, 1e18},
        o.target_cost);
  visit(SettingInfo{"mixed.cost_table",
                    "CSV file with the columns layer,bits,cost: what a layer costs on an "
                    "accelerator with weights of these bits"},
        o.cost_table);
  visit(SettingInfo{"mixed.min_bits", "fewest bits that a layer may get", "bits", 2, 8},
        o.min_bits);
  visit(SettingInfo{"mixed.max_bits", "most bits that a layer may get", "bits", 2, 8}, o.max_bits);
  visit(SettingInfo{"mixed.images",
                    "synthetic images that the sensitivity of each choice is measured on", "images",
                    1, 1e5},
        o.images);
}

}  // namespace zsq
