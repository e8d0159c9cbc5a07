// SPDX-License-Identifier: Apache-2.0
// Settings that belong to no step of the method: the model file, the exports, the process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/settings.h"
#include "eval/preprocessing_options.h"
#include "quant/mixed_options.h"

namespace zsq {

enum class Device { automatic, cpu, cuda };
template <>
struct EnumNames<Device> {
  static constexpr std::array<std::string_view, 3> names{"auto", "cpu", "cuda"};
};

enum class OutputMeaning { logits, scores, values, map };
template <>
struct EnumNames<OutputMeaning> {
  static constexpr std::array<std::string_view, 4> names{"logits", "scores", "values", "map"};
};
// Written as values, or as boxes=values,classes=scores.
struct NamedMeaning {
  std::string output;  // empty: every one that is not named
  OutputMeaning meaning = OutputMeaning::logits;
};

// Written as 600, 600s, 10min or 2h.
struct Duration {
  double seconds = 0;
};

struct ModelSettings {
  std::string arch;                     // built-in architecture, for files with weights only
  std::optional<ImageSize> image_size;  // for files with dynamic height and width
  std::int64_t channels = 0;         // for ONNX files that leave their number open; 0: the file's
  std::vector<NamedMeaning> output;  // empty: what the end of the network tells
  std::string bn_stats;              // safetensors with statistics of folded BatchNorm
  bool require_bn = false;           // refuse networks without BatchNorm statistics
};

struct ExportSettings {
  bool onnx = true;
  bool safetensors = true;
  bool packed = false;
};

struct ProcessOptions {
  std::int64_t seed = 0;
  Device device = Device::automatic;
  std::int64_t threads = 0;
  std::int64_t checkpoint_every = 1000;
  Duration time_budget;
  Budget memory_limit;
  std::int64_t agreement_images = 64;
  bool automatic = false;
};

template <class Visitor, class Options>
void visit_model_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"model.arch", "built-in architecture, for files that hold weights only"},
        o.arch);
  visit(SettingInfo{"model.image_size",
                    "height and width, where the file leaves them open: one number, or 48x192",
                    "pixels", 1, 4096},
        o.image_size);
  visit(SettingInfo{"model.channels",
                    "channels of images, where the file leaves their number open; 0: the file's",
                    "channels", 0, 4096},
        o.channels);
  visit(SettingInfo{"model.output",
                    "what the output means: logits of classes (softmax decides), scores of labels "
                    "(sigmoid, more than one may hold), values (embeddings, coordinates) or a map "
                    "of classes (segmentation); of several outputs NAME=MEANING,...; auto: what "
                    "the end of the network tells"},
        o.output);
  visit(SettingInfo{"model.bn_stats",
                    "safetensors file with the statistics of BatchNorm that was folded on export"},
        o.bn_stats);
  visit(SettingInfo{"model.require_bn",
                    "refuse a network without BatchNorm instead of taking statistics of "
                    "dead-leaves images"},
        o.require_bn);
}

template <class Visitor, class Options>
void visit_export_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"export.onnx", "write model.onnx (Q/DQ)"}, o.onnx);
  visit(SettingInfo{"export.safetensors", "write model.safetensors (codes and scales)"},
        o.safetensors);
  visit(SettingInfo{"export.packed",
                    "in model.onnx store weights of 4 bits and fewer as UINT4 (opset 21): half the "
                    "file, the same results and speed in onnxruntime"},
        o.packed);
}

template <class Visitor, class Options>
void visit_process_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"process.seed", "fixes every random draw", "", 0, 9e15}, o.seed);
  visit(SettingInfo{"process.device", "where tensors live; auto: a GPU if one can be used"},
        o.device);
  visit(SettingInfo{"process.threads", "CPU threads; 0: one per core", "threads", 0, 4096},
        o.threads);
  visit(SettingInfo{"process.checkpoint_every",
                    "iterations between checkpoints; 0: only when stopped", "iterations", 0, 1e9},
        o.checkpoint_every);
  visit(SettingInfo{"process.time_budget",
                    "scales the schedule to end in this time (600, 600s, 10min, 2h); 0: no limit",
                    "seconds", 0, 1e8},
        o.time_budget);
  visit(SettingInfo{"process.memory_limit",
                    "batches and stored values are made small enough for this much memory (6GB, or "
                    "50% of the machine's), and the process gets no more; 0: no limit",
                    "bytes or percent", 0, 1e15},
        o.memory_limit);
  visit(
      SettingInfo{"process.agreement_images",
                  "held-out synthetic images that student and teacher are compared on, of each of "
                  "two kinds; 0: none",
                  "images", 0, 1e6},
      o.agreement_images);
  visit(SettingInfo{"process.automatic",
                    "rounding, reconstruction and fine-tuning one after the other as far as the "
                    "time budget goes, each kept only if it brings the student nearer to the "
                    "teacher on held-out synthetic images of both kinds"},
        o.automatic);
}

}  // namespace zsq
