// SPDX-License-Identifier: Apache-2.0
// TorchScript archives (torch.jit.save): objects through the restricted unpickler, and the text of
// the code, which is parsed (script_syntax.h) and never run.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/array.h"

namespace zsq::formats {

struct TorchScript {
  // What an attribute holds.
  struct Value {
    enum class Kind { none, boolean, integer, real, text, list, tensor, object, unknown };
    Kind kind = Kind::none;
    std::int64_t integer = 0;  // also a boolean
    double real = 0;
    std::string text = {};
    std::vector<Value> items = {};
    std::size_t index = 0;  // into `tensors` or `objects`
  };
  struct Object {
    std::string type;  // "__torch__.torch.nn.modules.conv.Conv2d"
    std::string path;  // from the network, "layer1.0.conv1"; of an object with several, the first
    std::map<std::string, Value> attributes;
  };

  std::vector<Object> objects;              // the network comes first
  NamedArrays tensors;                      // by path, and "CONSTANTS.c<i>"
  std::vector<std::size_t> constants;       // the tensor that CONSTANTS.c<i> is
  std::map<std::string, std::string> code;  // by file: "__torch__/torch/nn/modules/conv.py"
  // Shape of the tensor that the network was traced with; empty if the archive does not tell.
  std::vector<std::int64_t> traced_shape;
};

// Error(bad_input): damaged, or larger than what it could hold.
TorchScript read_torchscript(const std::filesystem::path& path);

}  // namespace zsq::formats
