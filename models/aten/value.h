// SPDX-License-Identifier: Apache-2.0
// What a variable of a TorchScript or an exported program stands for while it is followed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace zsq::models::aten {

struct TensorName {
  std::string name;  // of its value in the importer
  // Views share memory: `writes` counts how often one of them was changed in place, `seen` how
  // many of these changes `name` includes.
  std::shared_ptr<int> writes = std::make_shared<int>(0);
  int seen = 0;
  std::string transposed = {};  // the constant matrix that this is the transpose of
};

struct Value {
  struct Object {
    std::size_t index;  // of an object of the TorchScript archive
  };
  struct Callee {
    std::string function;  // of the TorchScript archive
  };
  // One tensor and one list can be known under several names, as in Python.
  using List = std::shared_ptr<std::vector<Value>>;

  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::shared_ptr<TensorName>,
               List, Object, Callee>
      content = {};

  template <class T>
  const T* as() const {
    return std::get_if<T>(&content);
  }
  bool is_none() const { return content.index() == 0; }
  TensorName* tensor() const {
    const auto* held = as<std::shared_ptr<TensorName>>();
    return held ? held->get() : nullptr;
  }
  const std::vector<Value>* list() const {
    const auto* held = as<List>();
    return held ? held->get() : nullptr;
  }
};

inline Value make_list(std::vector<Value> items) {
  return {std::make_shared<std::vector<Value>>(std::move(items))};
}

// What the program calls.
struct Call {
  std::string op;  // ATen's name without overload: "conv2d", "relu_"
  struct Argument {
    std::string name;  // empty: by position
    Value value;
  };
  std::vector<Argument> arguments;
  std::string node;   // name for the graph's node
  std::string place;  // where the call stands, for messages
};

}  // namespace zsq::models::aten
