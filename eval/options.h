// SPDX-License-Identifier: Apache-2.0
// Real data, only to measure. Torch-free; recipe keys "data.*".
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/settings.h"
#include "eval/preprocessing_options.h"

namespace zsq {

// How the outputs of a detector hold boxes, and in which units (eval/box_head.h).
enum class BoxLayout { automatic, yolov8, yolov5, ssd, yunet, decoded };
template <>
struct EnumNames<BoxLayout> {
  static constexpr std::array<std::string_view, 6> names{"auto", "yolov8", "yolov5",
                                                         "ssd",  "yunet",  "decoded"};
};

enum class BoxUnits { automatic, relative, pixels };
template <>
struct EnumNames<BoxUnits> {
  static constexpr std::array<std::string_view, 3> names{"auto", "relative", "pixels"};
};

struct DataOptions : PreprocessingOptions {
  std::string eval_data;         // folder or file; empty: no evaluation
  std::int64_t eval_images = 0;  // 0: all
  std::int64_t eval_batch_size = 64;
  std::int64_t eval_threads = 0;  // 0: as many as the process computes with
  std::string eval_cache;         // folder, see eval/image_cache.h; empty: none
  std::string annotations;        // COCO JSON, see eval/coco_file.h; empty: none
  BoxLayout boxes = BoxLayout::automatic;
  BoxUnits box_units = BoxUnits::automatic;
  double box_score = 0.001;
  std::optional<double> box_nms_iou;  // nothing: by the layout
  std::int64_t max_boxes = 300;       // of an image
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
  visit(SettingInfo{"data.annotations",
                    "boxes of the images in data.eval_data, as COCO JSON; for detectors"},
        o.annotations);
  visit(
      SettingInfo{"data.boxes", "layout of a detector's outputs; auto: by their names and shapes"},
      o.boxes);
  visit(SettingInfo{"data.box_units",
                    "corners of the layouts ssd and decoded: relative to the network's input, or "
                    "its pixels; auto: relative if none exceeds 2 in the first batch"},
        o.box_units);
  visit(SettingInfo{"data.box_score", "boxes of a lower score are left out", "", 0, 1},
        o.box_score);
  visit(SettingInfo{"data.box_nms_iou",
                    "non-maximum suppression removes a box that overlaps a better one of its class "
                    "by more; auto: 0.7 of yolov8, 0.65 of the others, none of what enters the "
                    "network's own TopK; decoded has none",
                    "IoU", 0, 1},
        o.box_nms_iou);
  visit(SettingInfo{"data.max_boxes", "boxes of highest score that an image keeps", "boxes", 1,
                    10000},
        o.max_boxes);
}

}  // namespace zsq
