// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sysnoise/variants.h"

#include <array>

#include "models/execute.h"
#include "pipeline/sysnoise/graph_variants.h"

namespace zsq::pipeline {
namespace {

template <class Enum>
std::string name_of(Enum value) {
  return std::string(enum_name(value));
}

template <class Enum>
std::vector<Enum> others(Enum reference) {
  std::vector<Enum> result;
  for (std::size_t i = 0; i < EnumNames<Enum>::names.size(); ++i)
    if (const auto value = static_cast<Enum>(i); value != reference) result.push_back(value);
  return result;
}

std::vector<Variant> decoders(const eval::Preprocessing& reference) {
  std::vector<Variant> result;
  for (const Decoder decoder : others(reference.decoder)) {
    Variant variant{NoiseSource::decode, name_of(decoder)};
    variant.keys.decoder = decoder;
    result.push_back(std::move(variant));
  }
  return result;
}

Variant resized_by(Resizer resizer, Interpolation filter) {
  Variant variant{NoiseSource::resize, name_of(resizer) + " " + name_of(filter)};
  variant.keys.resizer = resizer;
  variant.keys.interpolation = filter;
  variant.keys.antialias = true;
  return variant;
}

std::vector<Variant> resizers(const eval::Preprocessing& reference) {
  std::vector<Variant> result;
  for (const Resizer resizer : {Resizer::pillow, Resizer::opencv})
    for (std::size_t i = 0; i < EnumNames<Interpolation>::names.size(); ++i) {
      const auto filter = static_cast<Interpolation>(i);
      const bool itself = resizer == reference.resizer && filter == reference.interpolation &&
                          (reference.antialias || resizer == Resizer::opencv);
      const bool missing = resizer == Resizer::opencv && filter == Interpolation::hamming;
      if (!itself && !missing) result.push_back(resized_by(resizer, filter));
    }
  for (const CropOrder order : others(reference.crop_order))
    if (order != CropOrder::none && order != CropOrder::letterbox) {  // one is a detector's
      Variant variant{NoiseSource::resize, name_of(order)};
      variant.keys.crop_order = order;
      result.push_back(std::move(variant));
    }
  return result;
}

std::vector<Variant> colours(const eval::Preprocessing& reference) {
  std::vector<Variant> result;
  for (const ChromaSubsampling way : others(reference.chroma_subsampling)) {
    if (way == ChromaSubsampling::nv12_before_resize && reference.crop_order == CropOrder::none)
      continue;  // nothing is resized
    Variant variant{NoiseSource::colour, name_of(way)};
    variant.keys.chroma_subsampling = way;
    result.push_back(std::move(variant));
  }
  return result;
}

using MakeGraph = std::optional<models::Graph> (*)(const models::Graph&);

Variant of_graph(NoiseSource source, std::string option, MakeGraph make, std::string absent) {
  const auto rewrite = [make, absent = std::move(absent)](const models::Model& model) {
    auto graph = make(model.graph);
    if (!graph) throw Error(ErrorCode::unsupported_model, absent);
    models::infer_shapes(*graph, model.parameters);
    models::Model result = model;
    result.graph = std::move(*graph);
    return result;
  };
  return {source, std::move(option), {}, rewrite};
}

void require_float(const models::Model& model) {
  if (has_quantizers(model.graph))
    throw Error(ErrorCode::unsupported_model, "the model is quantized already");
}

std::vector<Variant> precisions(
    const std::function<models::Model(const models::Model&)>& make_int8) {
  const auto half = [](at::ScalarType type) {
    return [type](const models::Model& model) {
      require_float(model);
      return rounded(model, type);
    };
  };
  const auto int8 = [make_int8](const models::Model& model) {
    require_float(model);
    return make_int8(model);
  };
  return {{NoiseSource::precision, "bf16", {}, half(at::kBFloat16)},
          {NoiseSource::precision, "fp16", {}, half(at::kHalf)},
          {NoiseSource::precision, "int8", {}, int8}};
}

}  // namespace

std::vector<Variant> image_variants(NoiseSource source, const eval::Preprocessing& reference) {
  switch (source) {
    case NoiseSource::decode:
      return decoders(reference);
    case NoiseSource::resize:
      return resizers(reference);
    case NoiseSource::colour:
      return colours(reference);
    default:
      return {};
  }
}

std::vector<Variant> model_variants(
    NoiseSource source, const std::function<models::Model(const models::Model&)>& make_int8) {
  switch (source) {
    case NoiseSource::precision:
      return precisions(make_int8);
    case NoiseSource::pool:
      return {of_graph(source, "ceil_mode", other_ceil_mode,
                       "the network has no max pooling of stride 2")};
    case NoiseSource::padding:
      return {
          of_graph(source, "other_side", other_padding_side, "the network pads all sides alike")};
    default:
      return {};
  }
}

}  // namespace zsq::pipeline
