// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "models/aten/program.h"
#include "models/programs.h"

namespace zsq::models {
namespace {

using aten::Value;
using Argument = formats::ExportedProgram::Argument;
using Kind = Argument::Kind;

// "conv2d" of "torch.ops.aten.conv2d.default", "floordiv" of "_operator.floordiv"; empty for
// operators of other libraries.
std::string operator_of(const std::string& target) {
  for (const std::string prefix : {"torch.ops.aten.", "_operator.", "math."}) {
    if (!target.starts_with(prefix)) continue;
    const auto name = target.substr(prefix.size());
    return name.substr(0, name.find('.'));
  }
  return {};
}

class Importer {
 public:
  Importer(const formats::ExportedProgram& file, const LoadOptions& options)
      : file_(file), program_(options) {
    for (std::size_t i = 0; i < file.tensors.size(); ++i) stored_[file.tensors[i].first] = i;
  }

  Model run() {
    if (file_.inputs.size() != 1) {
      throw Error(ErrorCode::unsupported_model, "the network has " +
                                                    std::to_string(file_.inputs.size()) +
                                                    " inputs; one image batch was expected");
    }
    values_[file_.inputs[0].name] = program_.add_input(file_.inputs[0].shape);
    for (const auto& node : file_.nodes) run_node(node);
    std::vector<Value> outputs;
    for (const auto& name : file_.outputs) outputs.push_back(read(name));
    return program_.finish(aten::make_list(std::move(outputs)));
  }

 private:
  const Value& read(const std::string& name) {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    const auto parameter = file_.parameters.find(name);
    if (parameter == file_.parameters.end()) {
      throw Error(ErrorCode::bad_input,
                  "'" + name + "' is read, but nothing before it produces it");
    }
    const auto tensor = stored_.find(parameter->second);
    if (tensor == stored_.end()) {
      throw Error(ErrorCode::bad_input, "the tensor '" + parameter->second + "' is missing");
    }
    const auto& array = file_.tensors[tensor->second].second;
    return values_[name] = program_.add_constant(parameter->second, to_tensor(array));
  }

  Value value(const Argument& argument) {
    switch (argument.kind) {
      case Kind::none:
        return {};
      case Kind::boolean:
        return {argument.integer != 0};
      case Kind::integer:
      case Kind::dtype:
        return {argument.integer};
      case Kind::real:
        return {argument.real};
      case Kind::text:
        return {argument.text};
      case Kind::tensor:
      case Kind::symbol:
        return read(argument.text);
      case Kind::list: {
        std::vector<Value> items;
        for (const auto& item : argument.items) items.push_back(value(item));
        return aten::make_list(std::move(items));
      }
      case Kind::other:  // layouts and devices: they do not change the numbers
        break;
    }
    return {};
  }

  void run_node(const formats::ExportedProgram::Node& node) {
    const auto place = "node '" + node.name + "'";
    const auto op = operator_of(node.target);
    if (op.starts_with("_assert") || op == "sym_constrain_range_for_size") return;
    if (op.empty()) {
      throw Error(ErrorCode::unsupported_model,
                  "operator " + node.target + " (" + place + ") is not known");
    }
    std::vector<aten::Call::Argument> arguments;
    for (const auto& input : node.inputs) arguments.push_back({input.name, value(input)});
    bind(node.outputs, program_.run({op, std::move(arguments), node.name, place}));
  }

  // One name for the result, or names for the first items of a list.
  void bind(const std::vector<Argument>& outputs, const Value& result) {
    if (outputs.size() == 1 && outputs[0].kind == Kind::list) return bind(outputs[0].items, result);
    const auto* items = result.list();
    if (!items) {
      if (!outputs.empty()) values_[outputs[0].text] = result;
      return;
    }
    for (std::size_t i = 0; i < std::min(items->size(), outputs.size()); ++i) {
      values_[outputs[i].text] = (*items)[i];
    }
  }

  const formats::ExportedProgram& file_;
  aten::Program program_;
  std::map<std::string, std::size_t> stored_;
  std::map<std::string, Value> values_;
};

}  // namespace

Model import_exported_program(const formats::ExportedProgram& file, const LoadOptions& options) {
  auto model = Importer(file, options).run();
  model.format = "pt2";
  model.producer = "torch.export";
  if (!file.torch_version.empty()) model.producer = "pytorch " + file.torch_version;
  return model;
}

}  // namespace zsq::models
