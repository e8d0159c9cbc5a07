// SPDX-License-Identifier: Apache-2.0
// Exported programs (torch.export.save, .pt2): a graph of ATen operators in JSON, and weights.
// Source: torch/_export/serde/schema.py, major version 5 to 8.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/array.h"

namespace zsq::formats {

struct ExportedProgram {
  struct Argument {
    enum class Kind {
      none,
      boolean,
      integer,
      real,
      text,
      tensor,  // text: its name
      symbol,  // text: the name of a size that is known once the program runs
      list,
      dtype,  // integer: c10::ScalarType; that of int64 for all that are no float
      other,  // text: what it is called in the file
    };
    std::string name;  // of the operator's parameter
    Kind kind = Kind::none;
    std::int64_t integer = 0;  // also a boolean
    double real = 0;
    std::string text;
    std::vector<Argument> items;
  };
  struct Node {
    std::string target;  // "torch.ops.aten.conv2d.default"
    std::string name;
    std::vector<Argument> inputs, outputs;
  };
  struct Input {
    std::string name;
    std::vector<std::int64_t> shape;  // -1: open
  };

  std::vector<Input> inputs;         // what a user gives
  std::vector<std::string> outputs;  // names of the tensors that a user gets
  std::vector<Node> nodes;
  // Name in the graph to the name in the module ("p_conv_weight" to "conv.weight").
  std::map<std::string, std::string> parameters;
  NamedArrays tensors;  // by the name in the module
  std::string torch_version;
};

// Error(bad_input): damaged; Error(unsupported_model): a version or a kind of weights that is not
// known.
ExportedProgram read_exported_program(const std::filesystem::path& path);

}  // namespace zsq::formats
