// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/net.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <sstream>

#include "exporters/ncnn/fuse.h"

namespace zsq::exporters::ncnn {
namespace {

constexpr std::int64_t kMagic = 7767517;

// One of the pieces of a list, as in "2,1,3".
template <class T>
std::string joined(const std::vector<T>& values) {
  std::string list = std::to_string(values.size());
  for (const T& value : values) (list += ',') += text(value);
  return list;
}

}  // namespace

std::string text(std::int64_t value) { return std::to_string(value); }

// ncnn reads at most 15 characters and at most 9 digits after the point; 9 digits are a float.
std::string text(float value) {
  std::array<char, 32> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.8e", static_cast<double>(value));
  return buffer.data();
}

std::string text(const std::vector<std::int64_t>& values) { return joined(values); }
std::string text(const std::vector<float>& values) { return joined(values); }

std::string Net::unique(const std::string& name) {
  std::string plain = name;
  for (char& c : plain)
    if (std::isspace(static_cast<unsigned char>(c))) c = '_';
  std::string result = plain;
  while (taken_.contains(result)) result = plain + "_" + std::to_string(++taken_[plain]);
  taken_[result] = 1;
  return result;
}

std::string Net::add(const std::string& type, const std::vector<std::string>& inputs,
                     const std::string& name, Settings settings, Weights weights) {
  std::string output = unique(name);
  add({type, output, inputs, {output}, std::move(settings), std::move(weights)});
  return output;
}

Layer& Net::add(Layer layer) { return layers_.emplace_back(std::move(layer)); }

void Net::rename(const std::string& from, const std::string& to) {
  for (Layer& layer : layers_) {
    std::replace(layer.inputs.begin(), layer.inputs.end(), from, to);
    std::replace(layer.outputs.begin(), layer.outputs.end(), from, to);
  }
}

void Net::finish(const std::string& output, const std::string& as) {
  rename(output, unique(as));
  fuse_activations(layers_);
  hand_over_codes(layers_);
  add_splits(layers_);
}

std::string Net::param_file() const {
  std::size_t blobs = 0;
  for (const Layer& layer : layers_) blobs += layer.outputs.size();
  std::ostringstream file;
  file << kMagic << "\n" << layers_.size() << " " << blobs << "\n";
  for (const Layer& layer : layers_) {
    file << layer.type << " " << layer.name << " " << layer.inputs.size() << " "
         << layer.outputs.size();
    for (const std::string& blob : layer.inputs) file << " " << blob;
    for (const std::string& blob : layer.outputs) file << " " << blob;
    for (const auto& [key, value] : layer.settings) file << " " << key << "=" << value;
    file << "\n";
  }
  return file.str();
}

std::string Net::bin_file() const {
  std::string bytes;
  for (const Layer& layer : layers_) bytes += layer.weights.bytes();
  return bytes;
}

}  // namespace zsq::exporters::ncnn
