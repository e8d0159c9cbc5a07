// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/saturation.h"

#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "core/observer.h"
#include "formats/onnx.h"
#include "models/load.h"
#include "pipeline/report/quality.h"
#include "pipeline/session/format.h"
#include "quant/pair_bound.h"
#include "quant/qdq_chain.h"
#include "quant/target_rules.h"

namespace zsq::pipeline {
namespace {

// int8 with zero point 0, by the names of the dequantized tensors.
quant::Int8Scales int8_scales(const formats::onnx::Graph& graph) {
  quant::Int8Scales scales;
  for (const formats::onnx::Node& node : graph.nodes) {
    if (node.op_type != "DequantizeLinear" || node.inputs.size() < 2) continue;
    const auto initializer = [&](std::size_t i) {
      return i < node.inputs.size() ? formats::find(graph.initializers, node.inputs[i]) : nullptr;
    };
    const formats::Array *codes = initializer(0), *scale = initializer(1), *zero = initializer(2);
    if (!codes || !scale || codes->dtype != formats::DType::i8) continue;
    if (zero && models::to_tensor(*zero).any().item<bool>()) continue;
    scales[node.outputs.at(0)] = models::to_tensor(*scale).to(at::kFloat);
  }
  return scales;
}

std::string in_words(const SaturationResult& result) {
  if (result.layers > 0) {
    std::string words =
        format("no: without VNNI sums saturate in %lld layers (quantize.weights.saturation)",
               static_cast<long long>(result.layers));
    if (result.agreement)
      words += format("; agreement %.1f %%, divergence %.4f there", 100 * *result.agreement,
                      *result.divergence);
    return words;
  }
  if (result.narrowed == 0) return "yes";
  return format(
      "yes: %.0f %% of the channels of 8-bit layers have a range %.2f times as wide for it",
      100.0 * static_cast<double>(result.narrowed) / static_cast<double>(result.bounded),
      result.mean_factor);
}

}  // namespace

quant::SaturatingNetwork saturating_network(const models::Model& model,
                                            const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "model.onnx" : path;
  quant::Int8Scales scales;
  if (model.format == "onnx") scales = int8_scales(formats::onnx::read(file).graph);
  if (scales.empty())
    throw Error(
        ErrorCode::usage,
        "'" + path.string() +
            "' holds no int8 weights, so that nothing is multiplied in 16 bits; --arithmetic "
            "avx2 takes an exported ONNX file or the output folder of a run");
  return quant::with_pair_saturation(model.graph, model.parameters, scales);
}

std::optional<SaturationResult> measure_saturation(const quant::Student& student,
                                                   const std::filesystem::path& file,
                                                   const std::vector<HeldOutImages>& held_out) {
  const QuantOptions& options = student.options;
  if (options.mode != Mode::deploy ||
      !quant::target_rules(options.target).weights.saturating_pairs ||
      !std::filesystem::exists(file))
    return std::nullopt;
  SaturationResult result;
  double factors = 0;
  for (const quant::WeightSite& site : quant::weight_sites(student)) {
    const quant::QuantizerSpec& spec = site.op->spec();
    if (spec.pair_bound == 0) continue;
    const at::Tensor pairs =
        quant::to_pairs(student.parameters.at(site.parameter).detach().cpu().to(at::kFloat));
    const at::Tensor scale =
        pairs.abs().amax({1, 2}).clamp_min(1e-30) / static_cast<double>(spec.qmax);
    const at::Tensor factor = quant::pair_factor(pairs, scale, spec.pair_bound);
    const at::Tensor wider = factor.gt(1);
    result.bounded += factor.numel();
    result.narrowed += wider.sum().item<std::int64_t>();
    factors += (factor * wider).sum().item<double>();
  }
  if (result.narrowed > 0) result.mean_factor = factors / static_cast<double>(result.narrowed);
  const formats::onnx::Model stored = formats::onnx::read(file);
  models::LoadOptions reading;
  reading.make_quantize_chain = quant::quantize_chain_factory();
  const models::Model model = models::import_onnx(stored, reading);
  const quant::SaturatingNetwork network =
      quant::with_pair_saturation(model.graph, model.parameters, int8_scales(stored.graph));
  result.layers = network.layers;
  result.channels = network.channels;
  if (network.layers > 0 && !held_out.empty()) {
    std::vector<HeldOutImages> on_cpu = held_out;
    for (HeldOutImages& images : on_cpu) {
      images.images = images.images.cpu();
      images.logits = images.logits.cpu();
    }
    result.synthetic = measure_on(on_cpu, network.graph, model.parameters);
    const PooledResult all = pool(result.synthetic);
    result.agreement = all.agreement;
    result.divergence = all.divergence;
  }
  result.words = in_words(result);
  return result;
}

void use_arithmetic(Arithmetic arithmetic, const std::filesystem::path& path, models::Model& model,
                    Observer& observer) {
  if (arithmetic == Arithmetic::exact) return;
  quant::SaturatingNetwork network = saturating_network(model, path);
  model.graph = std::move(network.graph);
  observer.on_message(
      LogLevel::info,
      network.layers == 0
          ? "no sum of two products can exceed 16 bits: the same on every x86 processor"
          : "without VNNI, sums of two products saturate in " + std::to_string(network.layers) +
                " layers (" + std::to_string(network.channels) + " output channels)");
}

}  // namespace zsq::pipeline
