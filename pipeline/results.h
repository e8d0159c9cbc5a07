// SPDX-License-Identifier: Apache-2.0
// What a run of zsq::quantize() found and measured: the content of report.json and report.html.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/box_measures.h"

namespace zsq {

struct Accuracy {
  double top1 = 0, top5 = 0;  // per cent
  std::int64_t images = 0;
};

// Of maps of classes against masks, per cent of the pixels (eval/evaluate.h).
struct PixelMeasures {
  double pixel_accuracy = 0, mean_iou = 0;
  std::int64_t images = 0;
};

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct Range {
  double low = 0, high = 0;
};

struct LayerResult {
  std::string name, op;
  std::int64_t weight_bits = 0;      // 0: float
  std::int64_t activation_bits = 0;  // of the layer's input; 0: float
  std::vector<double> scale;         // of the weights, one per output channel or one
  std::vector<std::int64_t> zero_point;
  // Share of codes that change in a step: by training; by recomputed ranges alone.
  double crossings = 0, range_update_flips = 0;
  std::string executes_as, reason;  // "int8", "int8, slow" or "float" on the target, and why
  // Signal-to-quantization-noise ratios in dB, 10 log10(sum y^2 / sum (y^ - y)^2): of the weights,
  // and of the layer's output if this layer alone is quantized, on synthetic images. Not finite
  // if there is no noise; NaN if they were not measured.
  double weight_sqnr = kNotMeasured, output_sqnr = kNotMeasured;
  Range weight_range;                // of the quantized weights
  std::optional<Range> input_range;  // that the quantizer of the input represents
};

// What fewer bits in one layer alone do to the predictions: KL to the teacher in nats per image, by
// bits of its weights and of its input.
struct SensitivityResult {
  std::string layer;
  std::map<std::int64_t, double> weights, input;  // input: empty if it was not measured
};

// Bits chosen for each layer under a budget (recipe keys mixed.*).
struct MixedResult {
  // "size" (bytes of parameters), "bops" (bit operations) or "cost" (by a table, in its unit).
  std::string budget_kind;
  double budget = 0, used = 0;
  double predicted_divergence = 0;  // sum of the layers' sensitivities, nats per image
  std::string cost_table = {}, cost_table_sha256 = {};  // file; empty for other kinds
  std::vector<SensitivityResult> sensitivity = {};      // in order of the network
};

// Squared error at the end of a block by the squared output of the float network, before and after
// the block was reconstructed.
struct BlockResult {
  std::string name;
  double before = 0, after = 0;
  std::int64_t iterations = 0;
};

// The state that a run with finetune.validation_checks ended with, and what its checks saw on
// held-out synthetic images: KL of teacher and student, nats per image, and share of the same
// class.
struct Divergence {
  double divergence = 0, agreement = 0;
};
struct BestCheckpointResult {
  std::int64_t iteration = 0;  // after which the student was as it was kept
  std::int64_t checks = 0, images = 0;
  double seconds = 0;            // of all checks
  Divergence start, kept, last;  // before fine-tuning; as kept; after the last iteration
};

// One output of a network of several, or with places (losses/divergence.h).
struct OutputResult {
  std::string name, kind;    // kind: "logits", "scores", "values" or "map"
  std::int64_t numbers = 0;  // per image
  double divergence = 0, agreement = 0;
};

// Student and teacher on held-out synthetic images of one kind, which nothing learnt from.
struct SyntheticResult {
  std::string kind;  // "dead_leaves", "scenes" or "optimised" (pipeline/images/held_out.h)
  std::int64_t images = 0;
  // By what the outputs mean (losses/divergence.h). Of logits: KL(teacher || student), temperature
  // 1, nats per image, and the share of the images of which both say the same class.
  double divergence = 0, agreement = 0;
  // Of the images of which the teacher decides what it decides most often; 0 for values that vary.
  double largest_share = 0;
  std::vector<OutputResult> outputs = {};  // each of several, or of one with places
};

// What x86 processors without VNNI compute of model.onnx at their runtimes' defaults, where
// products of two neighbouring codes are added in 16 bits (quant/pair_bound.h).
struct SaturationResult {
  std::int64_t layers = 0, channels = 0;  // in which sums can saturate; 0: the same everywhere
  // Of the layers whose weights are bounded: output channels, those whose scale the bound made
  // wider, and the mean factor of the latter.
  std::int64_t bounded = 0, narrowed = 0;
  double mean_factor = 1;
  // Of what such a processor computes, on the held-out images, where it is not the same.
  std::vector<SyntheticResult> synthetic;
  std::optional<double> agreement, divergence;
  std::string words;  // "yes, ..." or "no, ...": the same on every x86 processor
};

// A stage of a run: its estimated time, its measured time, and its gain.
struct StageResult {
  std::string name;
  double estimate = 0, seconds = 0;
  std::string outcome;  // "kept", "rejected: ...", "skipped: ..."; empty: not run yet
  std::vector<SyntheticResult> synthetic;  // after the stage, before it was rejected
};

struct QuantizeReport {
  std::string model, scheme, mode, recipe, tool_version, source_sha256, target;
  std::string weights, activations;  // granularity, symmetry and range rule, in words
  std::int64_t seed = 0, first_last_bits = 0;
  std::vector<std::string> float_tensors;
  std::int64_t iterations = 0, skipped_steps = 0;
  double seconds = 0, evaluation_seconds = 0;        // of the run; of it, with real images
  std::int64_t fp32_bytes = 0, quantized_bytes = 0;  // parameters
  std::string data, preset;                          // empty if nothing was evaluated
  std::string preprocessing;                         // as JSON, every key; empty if it is not known
  std::string pixels;  // their range, and what it is known from or why it is not
  // False where nothing tells the range of pixels, or the network contradicts the preprocessing:
  // then no synthetic image can say how good the student is.
  bool pixel_range_known = true;
  // False where the range is what the user says and nothing in the file can confirm it.
  bool pixels_confirmed = true;
  std::vector<std::string> notes;  // what is not as the file says, or was lost on its export
  std::optional<MixedResult> mixed;
  std::string output_kind = "logits";  // or "scores", "values", "map", "several": what they mean
  std::int64_t outputs = 0;            // how many
  std::optional<Accuracy> teacher, student;
  std::optional<eval::BoxMeasures> teacher_boxes, student_boxes;  // with data.annotations
  std::optional<PixelMeasures> teacher_pixels, student_pixels;    // where the data has masks
  std::optional<double> real_agreement;         // share of the real images both decide alike
  std::vector<SyntheticResult> synthetic;       // empty with process.agreement_images=0
  std::optional<double> agreement, divergence;  // of all synthetic images together
  std::string verdict;  // what these let expect or, if there were any, what real images measured
  std::optional<SaturationResult> saturation;  // empty where no runtime of the target saturates
  // Share of the multiply-accumulates that the target computes in float; empty without a file.
  std::optional<double> float_share;
  std::string costliest_layer;  // with the lowest output_sqnr; empty if none was measured
  std::vector<StageResult> stages;
  std::optional<BestCheckpointResult> kept;  // empty without finetune.validation_checks
  std::vector<LayerResult> layers;
  std::vector<BlockResult> blocks;           // empty without a reconstruction
  std::vector<std::filesystem::path> files;  // written, without report.*
};

std::string to_json(const QuantizeReport& report);  // the content of report.json
std::string to_html(const QuantizeReport& report);  // one page that needs no network

}  // namespace zsq
