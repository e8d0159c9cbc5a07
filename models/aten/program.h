// SPDX-License-Identifier: Apache-2.0
// Builds the graph of a program of ATen operators, call after call: each operator is written as
// ONNX nodes, which the importer of models/onnx turns into the graph. So sizes are numbers by the
// time that the program asks for them; only the batch size stays open (kBatch).
//
// Source of names, parameters and defaults: aten/src/ATen/native/native_functions.yaml.
#pragma once
#include <functional>
#include <map>
#include <optional>

#include "models/aten/value.h"
#include "models/onnx/importer.h"

namespace zsq::models::aten {

class Program {
 public:
  explicit Program(const LoadOptions& options);

  // N x C x H x W; -1 leaves a dimension open. Open channels are those of the first convolution, 3
  // if something else reads the image before it.
  Value add_input(const Shape& shape);
  Value add_constant(std::string name, at::Tensor value);
  // What the operator returns. Errors name the operator and the place.
  Value run(const Call& call);
  // A tensor, or a list of them, which may be nested: "output_0", ... in their order.
  Model finish(const Value& outputs);

 private:
  friend class Operation;

  std::optional<Value> try_scalars(const Call& call);
  Value run_operator(const Call& call);
  // A defined tensor if `value` is a constant.
  at::Tensor constant_of(const Value& value);
  Shape shape_of(const TensorName& tensor);
  // The tensor's name in the importer, after checking that it is up to date.
  const std::string& read(const TensorName& tensor);
  std::string new_name(const std::string& node);
  void settle_input(std::int64_t channels);

  onnx::Importer importer_;
  Shape input_shape_;
  std::string input_name_;
  bool input_is_settled_ = false;
  std::int64_t made_ = 0, calls_ = 0, listed_ = 0;
  double constant_bytes_ = 0, used_bytes_ = 0;
};

// One call of an operator, as its converter sees it; parameters by name.
class Operation {
 public:
  Operation(Program& program, const Call& call, const char* parameters);

  [[noreturn]] void fail(const std::string& what) const;  // Error(unsupported_model)

  std::string name() const;  // ATen's, without the mark of in-place variants

  bool has(const std::string& parameter) const;  // false: absent or None
  const Value& value(const std::string& parameter) const;
  std::int64_t integer(const std::string& parameter, std::int64_t otherwise) const;
  double number(const std::string& parameter, double otherwise) const;
  bool flag(const std::string& parameter, bool otherwise) const;
  std::string text(const std::string& parameter, const std::string& otherwise) const;
  // One number stands for a list of it.
  std::vector<std::int64_t> integers(const std::string& parameter,
                                     std::vector<std::int64_t> otherwise = {}) const;
  // Height and width: two numbers, or one for both.
  std::vector<std::int64_t> pair(const std::string& parameter, std::int64_t otherwise) const;

  // Names for emit(): of a tensor, of a tensor or number, of a new constant.
  std::string tensor(const std::string& parameter) const;
  std::string name_of(const Value& tensor) const;
  std::string operand(const std::string& parameter) const;
  std::string constant(const at::Tensor& value) const;
  std::string constant(const std::vector<std::int64_t>& values) const;
  std::string scalar(double value) const;  // a constant without dimensions, f32
  bool is_constant(const std::string& parameter) const;
  Shape shape(const std::string& parameter) const;  // of an activation, kBatch comes first
  Shape shape_of(const Value& tensor) const;
  void expect_channels(const std::string& parameter, std::int64_t channels) const;
  void warn(const std::string& what) const;

  // An ONNX node; attributes are numbers, lists of them, or text.
  using Attributes = std::map<std::string, decltype(onnx::proto::Attribute::value)>;
  std::vector<std::string> emit(const std::string& type, std::vector<std::string> inputs,
                                const Attributes& attributes, std::size_t outputs) const;
  std::string emit(const std::string& type, std::vector<std::string> inputs,
                   const Attributes& attributes = {}) const {
    return emit(type, std::move(inputs), attributes, 1)[0];
  }
  std::string reshaped(const std::string& x, const std::vector<std::int64_t>& shape) const {
    return emit("Reshape", {x, constant(shape)}, {{"allowzero", std::int64_t{1}}});
  }

 private:
  Program& program_;
  const Call& call_;
  std::map<std::string, const Value*> values_;
};

inline Value make_tensor(std::string name) {
  return {std::make_shared<TensorName>(TensorName{std::move(name)})};
}

struct Rule {
  Value (*convert)(const Operation&);
  const char* parameters;  // in order, separated by blanks
  bool is_view = false;    // the result may share the memory of the first argument
};
const std::map<std::string, Rule>& registry();

// What needs no tensor arithmetic: numbers, lists, sizes. No value: this is not such an operator,
// or one that works on tensors here. A constant tensor of one element comes as its number.
using ShapeOf = std::function<Shape(const TensorName&)>;
std::optional<Value> run_on_scalars(const std::string& op, const std::vector<Value>& arguments,
                                    const ShapeOf& shape_of);

}  // namespace zsq::models::aten
