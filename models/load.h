// SPDX-License-Identifier: Apache-2.0
// A model file in, a float Model out.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "formats/array.h"
#include "formats/onnx.h"
#include "models/graph.h"

namespace zsq::models {

// Turns the chain QuantizeLinear -> [Max] -> [Min] -> DequantizeLinear of an exported file into one
// operator; quant/ supplies it, because models/ knows nothing of quantization.
struct QuantizeChain {
  float scale = 1;
  std::int64_t zero_point = 0, qmin = 0, qmax = 255;
};
using QuantizeChainFactory = std::function<std::shared_ptr<const CustomOp>(
    const std::string& node_name, const QuantizeChain& chain, ParameterStore& parameters)>;

struct LoadOptions {
  std::string arch = {};  // built-in architecture, for files with weights only
  // Height and width, for files that leave them open, as those with weights only do; 0: not given.
  Pair image_size{0, 0};
  std::int64_t channels = 0;  // of images, for ONNX files that leave them open; 0: not given
  // What outputs mean, by name; "": those that are not named. Without either, what the end of the
  // network tells.
  std::map<std::string, OutputKind> outputs = {};
  // Statistics of folded BatchNorm (models/bn_statistics.h); empty: none.
  std::filesystem::path bn_statistics = {};
  QuantizeChainFactory make_quantize_chain = {};  // absent: such a chain is an unsupported operator
};

// By content, not by extension: ONNX, TorchScript, .pt2, safetensors, .pth, or a folder of Hugging
// Face (formats/hugging_face.h). A file with weights only needs options.arch, or the name of a
// built-in architecture in the safetensors metadata "arch". Parameters are contiguous f32. Errors
// name the file, what was found and what was expected.
Model load(const std::filesystem::path& path, const LoadOptions& options = {});

// Metadata of an exported file that leaves height and width open: the size that its network was
// quantized at, "224x320", which counts where options give none.
inline constexpr const char* kImageSizeKey = "zsq.image_size";
// The same of one that leaves the number of channels open.
inline constexpr const char* kChannelsKey = "zsq.channels";
Model import_onnx(const formats::onnx::Model& file, const LoadOptions& options = {});

// A built-in architecture. Its state dict is read under the names of each of the implementations.
struct ArchitectureInfo {
  std::string name, also;  // torchvision's name if it has one; timm's, if that is another
  std::int64_t parameters = 0, image_size = 0;  // as published, of 1000 classes
  std::string paper, implementations;  // "He et al., arXiv 1512.03385"; "torchvision, timm"
};
std::vector<ArchitectureInfo> architectures();  // by name
std::vector<std::string> architecture_names();  // name and also, and timm's tags are allowed

struct BuildOptions {
  std::uint64_t seed = 0;           // of the weights, if there is no state
  bool zero_weights = false;        // then, instead of random ones
  Pair image_size{0, 0};            // height and width; 0: the architecture's
  std::string implementation = {};  // whose names a network without a state has; empty: the first
};
// The network with the parameters of `state`; Error(bad_input) lists missing, unexpected and
// wrongly shaped tensors, with the nearest name and the expected shape. An empty `state` gives
// He-normal weights (benchmarks).
Model build(const std::string& architecture, const formats::NamedArrays& state,
            const BuildOptions& options = {});

// Same dtype (u4: u8), owns its memory.
at::Tensor to_tensor(const formats::Array& array);
formats::Array to_array(const at::Tensor& tensor);

// A safetensors file with the bytes that formats::write_safetensors() gives their arrays, without
// a copy of them.
void write_tensors(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                   const std::map<std::string, std::string>& metadata);

// What the BatchNorm layers allow, in words for a user.
struct BatchNormVerdict {
  enum class Kind { usable, none, folded } kind = Kind::usable;
  std::int64_t layers = 0, channels = 0, dead_channels = 0, negative_gammas = 0;
  std::string explanation;  // what was found, and the export line that keeps BatchNorm
  std::string refusal;      // the same where nothing takes its place; empty if it is usable
};
BatchNormVerdict inspect_batch_norm(const Model& model);
std::string name_of(BatchNormVerdict::Kind kind);  // "usable", "folded", "none"

// The convolutions that no BatchNorm follows, by what their biases tell.
struct BatchNormCensus {
  std::int64_t convolutions = 0;  // all
  // With a bias under a name that an exporter made up: BatchNorm was folded in.
  std::vector<std::string> look_folded;
  std::vector<std::string> without;  // the others
};
BatchNormCensus count_batch_norm(const Model& model);
void require_batch_norm(const Model& model);  // Error(unsupported_model) with the refusal

// Multiply-accumulates of one image, per node (index = NodeId; 0 if there are none).
std::vector<std::int64_t> multiply_accumulates(const Model& model);

}  // namespace zsq::models
