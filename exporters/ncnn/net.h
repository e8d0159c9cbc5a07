// SPDX-License-Identifier: Apache-2.0
// A network in ncnn's own format, as its developer guide describes it ("param and model file
// structure"): layers in order of execution with their blobs, settings by number, and weights.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace zsq::exporters::ncnn {

// Settings of a layer: number -> value as text. An array has the key array_key(number).
using Settings = std::map<int, std::string>;
constexpr int array_key(int number) { return -23300 - number; }
std::string text(std::int64_t value);
std::string text(float value);  // reads back as the same float
std::string text(const std::vector<std::int64_t>& values);
std::string text(const std::vector<float>& values);

// What a layer loads from the .bin file, in its order.
class Weights {
 public:
  void add_codes(std::span<const std::int8_t> codes);  // tagged as int8, padded to 4 bytes
  void add_tagged(std::span<const float> values);      // tagged as float32
  void add(std::span<const float> values);             // as they are
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct Layer {
  std::string type, name;
  std::vector<std::string> inputs, outputs;  // blobs
  Settings settings = {};
  Weights weights = {};
  // Of a layer in int8: 1 / step of the grid on which it quantizes its input; else 0.
  float input_scale = 0;
};

class Net {
 public:
  // Like `name`, and used by no blob or layer so far; ncnn ends names at white space.
  std::string unique(const std::string& name);
  // A layer with one output, which gets its name.
  std::string add(const std::string& type, const std::vector<std::string>& inputs,
                  const std::string& name, Settings settings = {}, Weights weights = {});
  Layer& add(Layer layer);

  // Activations join the layer before them, a layer in int8 hands codes to layers that read
  // nothing else, and a blob with several readers gets its Split. `output` gets the name `as`.
  void finish(const std::string& output, const std::string& as);

  std::string param_file() const;
  std::string bin_file() const;
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  void rename(const std::string& from, const std::string& to);

  std::vector<Layer> layers_;
  std::map<std::string, int> taken_;  // name -> how many have asked for it
};

}  // namespace zsq::exporters::ncnn
