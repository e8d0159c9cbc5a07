// SPDX-License-Identifier: Apache-2.0
// What a model file holds and what of it can be quantized.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "recipes/recipe.h"

namespace zsq {

struct InspectLayer {
  std::string name, op;
  std::vector<std::int64_t> shape;  // of the output, batch 1
  std::int64_t parameters = 0, macs = 0;
  std::int64_t weight_bits = 0, activation_bits = 0;  // in a student by the recipe; 0: float
};

struct InspectReport {
  std::string model, format, producer, architecture;
  std::vector<std::int64_t> input_shape;               // C, H, W
  std::int64_t classes = 0, parameters = 0, macs = 0;  // classes: how many outputs there are
  std::string output_kind = "logits";                  // or "scores", "values": what they mean
  bool quantizable = false;                            // float, with a layer of weights
  std::string batch_norm;                              // "usable", "folded", "none"
  std::string explanation;                             // of that verdict, with what to do
  std::int64_t batch_norm_layers = 0, batch_norm_channels = 0, dead_channels = 0;
  std::vector<std::string> notes;          // what is not as the file says
  std::vector<std::string> float_tensors;  // that would stay float at inference
  std::vector<InspectLayer> layers;
};

// The recipe says which student the bits are of.
InspectReport inspect(const std::filesystem::path& model, const Recipe& recipe = load_recipe());

// A built-in architecture, for files that hold weights only (recipe key model.arch).
struct ArchitectureRow {
  std::string name, also;  // another name of it: timm's
  std::int64_t parameters = 0, image_size = 0;
  std::string paper, implementations;  // those whose state dicts are read, comma-separated
};
std::vector<ArchitectureRow> architectures();
std::string to_json(const std::vector<ArchitectureRow>& rows);

// What is read of networks in files, by the operators' names there.
struct Operators {
  std::int64_t first_opset = 0, last_opset = 0;  // of ONNX
  std::vector<std::string> onnx;
  std::vector<std::string> onnx_constants;  // where all inputs are constants or sizes
  std::vector<std::string> aten;            // of TorchScript and .pt2
};
Operators operators();
std::string to_json(const Operators& lists);

std::string to_json(const InspectReport& report);

}  // namespace zsq
