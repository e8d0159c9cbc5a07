// SPDX-License-Identifier: Apache-2.0
// What is quantized, how many bits, which rule finds the ranges. Torch-free; recipe keys
// "quantize.*".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/settings.h"

namespace zsq {

enum class Mode { paper, deploy };
enum class Target { onnxruntime, openvino, tensorrt, generic, qcdq, tflite, ncnn };
enum class Symmetry { automatic, yes, no };
enum class WeightRange { min_max, mse };
enum class WeightRounding { nearest, squant, gptq, adaround };
enum class Saturation { avoid, halve, allow };
enum class ActivationRange { bn_statistics, ema, min_max, percentile, mse, entropy };
enum class LevelTable { integer, symmetric_integer, fp4, flint, power_of_two, normal, learned };
enum class LevelChoice { channel, layer };
enum class BiasCorrection { none, bn_statistics };
enum class Equalization { none, depthwise, inverted_residuals, all };

template <>
struct EnumNames<Mode> {
  static constexpr std::array<std::string_view, 2> names{"paper", "deploy"};
};
template <>
struct EnumNames<Target> {
  static constexpr std::array<std::string_view, 7> names{
      "onnxruntime", "openvino", "tensorrt", "generic", "qcdq", "tflite", "ncnn"};
};
template <>
struct EnumNames<Symmetry> {
  static constexpr std::array<std::string_view, 3> names{"auto", "true", "false"};
};
template <>
struct EnumNames<WeightRange> {
  static constexpr std::array<std::string_view, 2> names{"min_max", "mse"};
};
template <>
struct EnumNames<WeightRounding> {
  static constexpr std::array<std::string_view, 4> names{"nearest", "squant", "gptq", "adaround"};
};
template <>
struct EnumNames<Saturation> {
  static constexpr std::array<std::string_view, 3> names{"avoid", "halve", "allow"};
};
// Methods that look at images (quant/rounding/registry.h).
constexpr bool needs_images(WeightRounding rounding) { return rounding >= WeightRounding::gptq; }
template <>
struct EnumNames<LevelTable> {
  static constexpr std::array<std::string_view, 7> names{
      "int", "symmetric_int", "fp4", "flint", "power_of_two", "normal", "learned"};
};
template <>
struct EnumNames<LevelChoice> {
  static constexpr std::array<std::string_view, 2> names{"channel", "layer"};
};
template <>
struct EnumNames<BiasCorrection> {
  static constexpr std::array<std::string_view, 2> names{"none", "bn_statistics"};
};
template <>
struct EnumNames<Equalization> {
  static constexpr std::array<std::string_view, 4> names{"none", "depthwise", "inverted_residuals",
                                                         "all"};
};
template <>
struct EnumNames<ActivationRange> {
  static constexpr std::array<std::string_view, 6> names{"bn_statistics", "ema", "min_max",
                                                         "percentile",    "mse", "entropy"};
};

// Bits of one layer, by its name in the network; written "name=bits".
struct LayerBits {
  std::string layer;
  std::int64_t bits = 0;
};

struct WeightOptions {
  std::int64_t num_bits = 4;
  bool per_channel = true;
  Symmetry symmetric = Symmetry::automatic;
  WeightRange range = WeightRange::mse;
  // Published behaviour: the range is computed again from the weights at each forward pass.
  bool range_every_step = false;
  WeightRounding rounding = WeightRounding::nearest;  // at the start
  Saturation saturation = Saturation::avoid;
  std::vector<LevelTable> level_tables;  // of layers with 3 or 4 bits; empty: uniform
  LevelChoice level_choice = LevelChoice::channel;
  std::vector<LayerBits> layer_bits;  // go before num_bits and first_last_bits
};

struct ActivationOptions {
  std::int64_t num_bits = 4;
  ActivationRange range = ActivationRange::mse;
  double percentile = 99.99;
  double ema_decay = 0.9;
  std::int64_t calibration_images = 1024;
  std::vector<LayerBits> layer_bits;  // of the input of a layer (deploy)
};

// WeightRounding::gptq.
struct GptqOptions {
  std::int64_t images = 32;
  double damping = 0.3;
  double error_compensation = 0;
};

struct QuantOptions {
  Mode mode = Mode::deploy;
  Target target = Target::onnxruntime;
  WeightOptions weights;
  GptqOptions gptq;
  ActivationOptions activations;
  Equalization equalize = Equalization::none;
  BiasCorrection bias_correction = BiasCorrection::none;
  std::int64_t split_channels = 0;      // images; 0: none
  double split_expansion = 0;           // %, of multiplications
  std::int64_t rotation = 0;            // images; 0: none
  std::int64_t channel_correction = 0;  // images; 0: none
  std::int64_t rewrite_batch_size = 8;  // images at once
  std::int64_t layer_batch_size = 16;   // images at once
  std::int64_t first_last_bits = 8;     // 0: the same bits as the rest (deploy)
  std::int64_t add_bits = 8;            // both inputs of an Add, and what feeds them (deploy)
  std::int64_t image_bits = 8;          // the network's input (deploy)
  std::int64_t second_input_bits = 0;   // what the second layer reads (deploy); 0: as the rest
  // Pixel range after preprocessing, known from a preset; lo == hi: taken from generated images.
  double image_lo = 0, image_hi = 0;
};

template <class Visitor, class Options>
void visit_weight_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"quantize.weights.num_bits", "bits of weights", "bits", 2, 8}, o.num_bits);
  visit(SettingInfo{"quantize.weights.layer_bits",
                    "of single layers (name=bits), instead of num_bits and first_last_bits; "
                    "mixed.* fills it",
                    "bits", 2, 8},
        o.layer_bits);
  visit(SettingInfo{"quantize.weights.per_channel", "one scale per output channel"}, o.per_channel);
  visit(SettingInfo{"quantize.weights.symmetric",
                    "zero point 0; auto: where the target asks for it (onnxruntime: 8 bits), in "
                    "mode paper nowhere; false: 8-bit files run slower than in float"},
        o.symmetric);
  visit(SettingInfo{"quantize.weights.range", "rule that finds the range"}, o.range);
  visit(SettingInfo{"quantize.weights.range_every_step",
                    "compute the range anew at each forward pass (published code)"},
        o.range_every_step);
  visit(SettingInfo{"quantize.weights.rounding",
                    "rounding of the weights before training: nearest; squant: rounding errors "
                    "cancel within each kernel and channel; gptq: GPTQ-style, minimises the "
                    "error of each layer's output on images",
                    "", 0, 0, "SQuant 3, GPTQ"},
        o.rounding);
  visit(
      SettingInfo{"quantize.weights.saturation",
                  "of runtimes that add two products in 16 bits on x86 processors without VNNI: "
                  "avoid bounds neighbouring weights so that no sum overflows; halve: every "
                  "weight to half the codes, for sums in any order; allow: as if none overflowed"},
      o.saturation);
  visit(SettingInfo{"quantize.weights.level_tables",
                    "of layers with 3 or 4 bits: tables of levels, the best of which is chosen for "
                    "each output channel (int: the uniform grid); empty: uniform grids. For runs "
                    "without fine-tuning",
                    "", 0, 0, "ANT; NF4"},
        o.level_tables);
  visit(SettingInfo{"quantize.weights.level_choice",
                    "of quantize.weights.level_tables, each output channel takes the table of its "
                    "least squared error, or all channels of a layer take one, with ANT's scales",
                    "", 0, 0, "ANT"},
        o.level_choice);
}

template <class Visitor, class Options>
void visit_gptq_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"quantize.gptq.images",
                    "images for GPTQ-style rounding, from generate.bank or made by generate.images",
                    "images", 1, 1e6},
        o.images);
  visit(SettingInfo{"quantize.gptq.damping",
                    "damping of the Hessian, in multiples of the mean square of the layer's input",
                    "", 1e-6, 1e6},
        o.damping);
  visit(SettingInfo{"quantize.gptq.error_compensation",
                    "share of the error of the preceding layers that a layer compensates", "", 0, 1,
                    "GPTAQ"},
        o.error_compensation);
}

template <class Visitor, class Options>
void visit_activation_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"quantize.activations.num_bits", "bits of activations", "bits", 2, 8},
        o.num_bits);
  visit(SettingInfo{"quantize.activations.layer_bits",
                    "of the inputs of single layers (name=bits; deploy); mixed.* fills it", "bits",
                    2, 8},
        o.layer_bits);
  visit(SettingInfo{"quantize.activations.range", "rule that finds the range"}, o.range);
  visit(SettingInfo{"quantize.activations.percentile", "share of values inside the range", "%", 50,
                    100},
        o.percentile);
  visit(SettingInfo{"quantize.activations.ema_decay", "decay of the moving average, per batch", "",
                    0, 0.9999},
        o.ema_decay);
  visit(SettingInfo{"quantize.activations.calibration_images",
                    "generated images for the calibration of the ranges", "images", 1, 1e6},
        o.calibration_images);
}

template <class Visitor, class Options>
void visit_quant_settings(Visitor&& visit, Options& o) {
  visit(
      SettingInfo{
          "quantize.mode",
          "paper: the published setting; deploy: the setting that a runtime executes in integers"},
      o.mode);
  visit(SettingInfo{"quantize.target",
                    "runtime whose rules for quantizers the student follows, and for which "
                    "model.onnx is written; tensorrt, ncnn: 8-bit activations are symmetric"},
        o.target);
  visit_weight_settings(visit, o.weights);
  visit_gptq_settings(visit, o.gptq);
  visit_activation_settings(visit, o.activations);
  visit(SettingInfo{"quantize.equalize",
                    "cross-layer equalization of channels from BatchNorm to the next convolution: "
                    "below 8 bits before depthwise convolutions, or also after linear layers "
                    "(inverted_residuals), or before all convolutions",
                    "", 0, 0, "arXiv 1906.04721, 4.1"},
        o.equalize);
  visit(
      SettingInfo{"quantize.split_channels",
                  "dead-leaves images that tell which channels around depthwise convolutions "
                  "suffer most from fewer than 8 bits: copies of them take the places of channels "
                  "that are always 0; 0: none. Needs equalize=depthwise",
                  "images", 0, 1e6, "arXiv 1901.09504"},
      o.split_channels);
  visit(SettingInfo{"quantize.split_expansion",
                    "multiplications that further copies of split_channels may add to the network; "
                    "reports name what they add",
                    "%", 0, 100, "arXiv 1901.09504"},
        o.split_expansion);
  visit(
      SettingInfo{"quantize.rotation",
                  "dead-leaves images on whose correlations the channels of linear bottlenecks are "
                  "rotated to equal variances before activations get fewer than 8 bits; 0: none",
                  "images", 0, 1e6, "arXiv 2404.00456"},
      o.rotation);
  visit(SettingInfo{"quantize.rewrite_batch_size",
                    "images that split_channels and rotation compute at once", "images", 1, 1e6},
        o.rewrite_batch_size);
  visit(
      SettingInfo{"quantize.layer_batch_size",
                  "images that rounding and channel_correction compute at once", "images", 1, 1e6},
      o.layer_batch_size);
  visit(
      SettingInfo{
          "quantize.bias_correction",
          "subtract each layer's mean error, inferred from BatchNorm statistics, from its bias", "",
          0, 0, "arXiv 1906.04721, 4.2"},
      o.bias_correction);
  visit(SettingInfo{"quantize.channel_correction",
                    "images, from generate.bank or made by generate.images, on which each channel "
                    "of the rounded student gets the teacher's mean and deviation; 0: none",
                    "images", 0, 1e6},
        o.channel_correction);
  visit(SettingInfo{"quantize.first_last_bits",
                    "bits of the first and last layer (deploy); 0: as the rest", "bits", 0, 8},
        o.first_last_bits);
  visit(
      SettingInfo{"quantize.add_bits", "bits of both inputs of an addition (deploy)", "bits", 2, 8},
      o.add_bits);
  visit(SettingInfo{"quantize.second_input_bits",
                    "bits of what layers read that follow the first one (deploy); 0: as the rest",
                    "bits", 0, 8, "BRECQ, Genie"},
        o.second_input_bits);
  visit(SettingInfo{"quantize.image_bits", "bits of the network's input (deploy)", "bits", 2, 8},
        o.image_bits);
}

}  // namespace zsq
