// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/fuse.h"

#include <algorithm>
#include <limits>

#include "exporters/ncnn/settings.h"

namespace zsq::exporters::ncnn {
namespace {

using Readers = std::map<std::string, std::vector<std::size_t>>;  // blob -> indices of layers

Readers readers_of(const std::vector<Layer>& layers) {
  Readers readers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (const std::string& blob : layers[i].inputs) readers[blob].push_back(i);
  return readers;
}

bool is_convolution(const Layer& layer) {
  return layer.type == "Convolution" || layer.type == "ConvolutionDepthWise";
}

std::string value_or(const Layer& layer, int key, float otherwise) {
  const auto found = layer.settings.find(key);
  return found == layer.settings.end() ? text(otherwise) : found->second;
}

void take_up(Layer& layer, const Layer& activation) {
  layer.outputs = activation.outputs;
  if (activation.type == "ReLU") {
    layer.settings[kActivation] = text(kReluActivation);
    return;
  }
  constexpr float most = std::numeric_limits<float>::max();
  layer.settings[kActivation] = text(kClipActivation);
  layer.settings[array_key(kActivationValues)] =
      "2," + value_or(activation, 0, -most) + "," + value_or(activation, 1, most);
}

bool is_plain_activation(const Layer& layer) {
  return layer.type == "Clip" || (layer.type == "ReLU" && layer.settings.empty());
}

}  // namespace

void fuse_activations(std::vector<Layer>& layers) {
  const Readers readers = readers_of(layers);
  std::map<std::string, std::size_t> maker;
  std::vector<bool> gone(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const std::string& blob : layers[i].outputs) maker[blob] = i;
    if (!is_plain_activation(layers[i])) continue;
    const auto found = maker.find(layers[i].inputs[0]);
    if (found == maker.end() || readers.at(layers[i].inputs[0]).size() != 1) continue;
    Layer& before = layers[found->second];
    if (!is_convolution(before) && before.type != "InnerProduct") continue;
    if (before.settings.contains(kActivation)) continue;
    take_up(before, layers[i]);
    maker[before.outputs[0]] = found->second;
    gone[i] = true;
  }
  std::size_t i = 0;
  std::erase_if(layers, [&](const Layer&) { return gone[i++]; });
}

void hand_over_codes(std::vector<Layer>& layers) {
  const Readers readers = readers_of(layers);
  for (Layer& layer : layers) {
    const auto found = readers.find(layer.outputs[0]);
    if (!is_convolution(layer) || layer.input_scale == 0 || found == readers.end()) continue;
    const float scale = layers[found->second[0]].input_scale;
    const bool same = std::all_of(found->second.begin(), found->second.end(), [&](std::size_t i) {
      return layers[i].input_scale == scale && is_convolution(layers[i]);
    });
    if (scale == 0 || !same) continue;
    layer.settings[kInt8Scales] =
        text(std::int64_t{kGivesCodes + std::stoll(layer.settings.at(kInt8Scales))});
    layer.weights.add(std::span(&scale, 1));
  }
}

void add_splits(std::vector<Layer>& layers) {
  const Readers readers = readers_of(layers);
  std::map<std::string, std::size_t> used;  // outputs of the Split of a blob that have a reader
  std::vector<Layer> result;
  for (Layer& layer : layers) {
    for (std::string& blob : layer.inputs)
      if (readers.at(blob).size() > 1) blob += "_split_" + std::to_string(used[blob]++);
    const std::vector<std::string> outputs = layer.outputs;
    result.push_back(std::move(layer));
    for (const std::string& blob : outputs) {
      const auto found = readers.find(blob);
      if (found == readers.end() || found->second.size() < 2) continue;
      Layer split{"Split", blob + "_split", {blob}, {}};
      for (std::size_t i = 0; i < found->second.size(); ++i)
        split.outputs.push_back(blob + "_split_" + std::to_string(i));
      result.push_back(std::move(split));
    }
  }
  layers = std::move(result);
}

}  // namespace zsq::exporters::ncnn
