// SPDX-License-Identifier: Apache-2.0
// Student to file: what is written is what the student already is. Kinds of files and targets are
// rows of registry.cpp.
#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "quant/student.h"

namespace zsq::exporters {

using Metadata =
    std::map<std::string, std::string>;  // scheme, mode, recipe, seed, source hash, ...

struct ExecutesAs {
  std::string layer, op;
  std::string executes_as;  // "int8", "int8, slow", "float"
  std::string speed;        // "fast", "slower than float", "as float"
  std::string reason;       // the rule that decides
};

// What a target cannot hold without changing values: layers or quantizers, and why.
struct Refusal {
  std::string node, reason;
};
class RefusedByTarget : public Error {
 public:
  RefusedByTarget(Target target, std::vector<Refusal> refusals);
  const std::vector<Refusal>& refusals() const { return refusals_; }

 private:
  std::vector<Refusal> refusals_;
};

struct ExportReport {
  std::int64_t bytes = 0;
  std::vector<ExecutesAs> layers;
};

struct ExportOptions {
  bool packed = false;  // ONNX: weights of 4 bits and fewer take 4 bits of the file
};

// ONNX with Q/DQ nodes for the student's target, in the form that its file in this folder states
// (exporters/onnxruntime.h, ...); opset 13, or the first that has what the form or an operator
// needs; names, layout and last function of the network's file
// (models::Signature); without one input "input" [N, C, H, W], output "logits". BatchNorm is folded
// exactly. Activations are uint8 unless the form says otherwise, limited where fewer than 8 bits or
// a Clip that was folded in ask for it; weights int8 2^k * (q - z) with zero point 0 and scale /
// 2^k, k >= 0 per channel (8-bit asymmetric weights, where asked for: uint8 with zero points). With
// options.packed, opset 21 and exporters/packed_codes.h; a layer of which a code left its grid when
// BatchNorm was folded (quant/fold_batch_norm.h) stays int8. RefusedByTarget if the target would
// compute another thing.
ExportReport export_onnx(const quant::Student& student, const std::filesystem::path& path,
                         const Metadata& metadata, const ExportOptions& options = {});

class QdqForm;

// A target: what `zsq export --target` writes for it, a file of ONNX or of the runtime's own
// format.
struct TargetFile {
  Target name;
  const QdqForm& (*form)();  // of the ONNX files of a run for it
  std::string_view extension;
  ExportReport (*write)(const quant::Student&, const std::filesystem::path&, const Metadata&,
                        const ExportOptions&);
};
const TargetFile& target_file(Target target);

// safetensors: per layer "<layer>.weight.codes" (packed: two 4-bit or narrower codes per byte, low
// nibble first), ".weight.scale", ".weight.zero_point" (with level tables ".weight.levels" i8
// [tables, 2^bits] and ".weight.level_index" u8 [channels] instead), ".bias", per quantizer
// "<node>.scale", ".zero_point"; the rest as f32. Metadata says how to read them.
ExportReport export_safetensors(const quant::Student& student, const std::filesystem::path& path,
                                const Metadata& metadata, const ExportOptions& options = {});

// A kind of file. A new one: a function in a file of its own, a row in registry.cpp, and a setting
// "export.<name>" that asks for it (recipes/options.h).
struct Exporter {
  std::string_view name, file;  // file: its name in the output folder
  ExportReport (*write)(const quant::Student&, const std::filesystem::path&, const Metadata&,
                        const ExportOptions&);
};
std::span<const Exporter> registry();

// Bytes of the parameters alone: FP32 as the teacher stores them; quantized with BatchNorm folded
// (bits per weight and per zero point, an f32 scale and an f32 bias per output channel; for level
// tables a byte per level of each table of the layer and a byte per output channel).
struct SizeReport {
  std::int64_t fp32_bytes = 0, quantized_bytes = 0;
};
// Of quantized_bytes, what depends on the bits of one layer's weights: codes, and zero points or
// level tables.
std::int64_t code_bytes(const quant::Student& student, const quant::WeightSite& site);
SizeReport parameter_bytes(const models::Model& teacher, const quant::Student& student);

}  // namespace zsq::exporters
