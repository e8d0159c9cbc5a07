// SPDX-License-Identifier: Apache-2.0
// Real data, only to measure. Torch-free; recipe keys "data.*".
#pragma once
#include <cstdint>
#include <string>

#include "core/settings.h"
#include "eval/preprocessing_options.h"

namespace zsq {

struct DataOptions : PreprocessingOptions {
  std::string eval_data;         // folder or file; empty: no evaluation
  std::int64_t eval_images = 0;  // 0: all
  std::int64_t eval_batch_size = 64;
  std::int64_t eval_threads = 0;  // 0: as many as the process computes with
  std::string eval_cache;         // folder, see eval/image_cache.h; empty: none
};

template <class Visitor, class Options>
void visit_data_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"data.eval_data", "real images to measure with (never to choose or to train)"},
        o.eval_data);
  visit_preprocessing_settings(visit, o);
  visit(SettingInfo{"data.eval_images", "first n images only; 0: all", "images", 0, 1e9},
        o.eval_images);
  visit(SettingInfo{"data.eval_batch_size", "images per forward pass", "images", 1, 65536},
        o.eval_batch_size);
  visit(SettingInfo{"data.eval_threads",
                    "threads that decode images while the network runs; 0: as process.threads",
                    "threads", 0, 4096},
        o.eval_threads);
  visit(SettingInfo{"data.eval_cache", "folder that keeps decoded images for the next run"},
        o.eval_cache);
}

}  // namespace zsq
