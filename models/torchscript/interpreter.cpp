// SPDX-License-Identifier: Apache-2.0
#include "models/torchscript/interpreter.h"

#include <algorithm>

#include "core/error.h"

namespace zsq::models::torchscript {
namespace {

using formats::Expression;
using formats::Statement;

constexpr std::int64_t kMaxSteps = 5'000'000;
constexpr int kMaxDepth = 400;  // of calls and expressions

}  // namespace

std::string Interpreter::place(const Frame& frame, int line) const {
  return frame.file + ", line " + std::to_string(line);
}

void Interpreter::fail(const Frame& frame, int line, const std::string& what) const {
  throw Error(ErrorCode::unsupported_model, place(frame, line) + ": " + what);
}

Interpreter::Nested::Nested(Interpreter& interpreter, const Frame& frame, int line)
    : interpreter_(interpreter) {
  interpreter.charge(1, frame, line);
  if (++interpreter.depth_ > kMaxDepth) interpreter.fail(frame, line, "is nested too deeply");
}

void Interpreter::charge(std::size_t steps, const Frame& frame, int line) {
  steps_ += static_cast<std::int64_t>(steps);
  if (steps_ > kMaxSteps) {
    fail(frame, line, "the code runs longer than that of any network");
  }
}

aten::Value Interpreter::text(const std::string& given, const Frame& frame, int line) {
  constexpr std::size_t kBytesInAStep = 16;
  charge(given.size() / kBytesInAStep, frame, line);
  return {given};
}

aten::Value Interpreter::run(const Value& image) {
  return call_method({Value::Object{0}}, "forward", {{"", image}});
}

// "__torch__.torch.nn.functional.relu" is relu in __torch__/torch/nn/functional.py, and
// "__torch__.net.Net.forward" the method of a class in __torch__/net.py.
Interpreter::Found Interpreter::find(const std::string& qualified, const std::string& what) {
  for (auto dot = qualified.rfind('.'); dot != std::string::npos && dot > 0;
       dot = qualified.rfind('.', dot - 1)) {
    auto file = qualified.substr(0, dot);
    std::replace(file.begin(), file.end(), '.', '/');
    file += ".py";
    const auto code = archive_.code.find(file);
    if (code == archive_.code.end()) continue;
    if (!files_.count(file)) {
      try {
        files_[file] = formats::parse_script(code->second);
      } catch (const Error& error) {
        throw Error(error.code(), "code/" + file + ", " + error.what());
      }
    }
    const auto function = files_[file].find(qualified.substr(dot + 1));
    if (function != files_[file].end()) return {&function->second, "code/" + file};
  }
  throw Error(ErrorCode::unsupported_model, what + " '" + qualified +
                                                "' is not in the code of the archive; a network " +
                                                "in TorchScript was expected");
}

aten::Value Interpreter::call(const Found& found, std::vector<aten::Call::Argument> arguments,
                              std::string path) {
  Frame frame{found.file, std::move(path)};
  const auto& function = *found.function;
  const Nested nested(*this, frame, function.line);
  std::size_t next = 0;
  for (auto& argument : arguments) {
    if (argument.name.empty() && next >= function.parameters.size()) {
      fail(frame, function.line, "is called with too many arguments");
    }
    const auto name = argument.name.empty() ? function.parameters[next++].name : argument.name;
    frame.variables[name] = std::move(argument.value);
  }
  for (const auto& parameter : function.parameters) {
    if (frame.variables.count(parameter.name)) continue;
    if (!parameter.otherwise) {
      fail(frame, function.line,
           "the argument '" + parameter.name + "' is missing; one image batch is given");
    }
    frame.variables[parameter.name] = evaluate(*parameter.otherwise, frame);
  }
  Value returned;
  execute(function.body, frame, returned);
  return returned;
}

aten::Value Interpreter::call_method(const Value& object, const std::string& method,
                                     std::vector<aten::Call::Argument> arguments) {
  const auto* self = object.as<Value::Object>();
  if (!self) {
    throw Error(ErrorCode::unsupported_model,
                "the method '" + method + "' is called on what is not a module");
  }
  const auto& module = archive_.objects[self->index];
  arguments.insert(arguments.begin(), {"", object});
  return call(find(module.type + "." + method, "the method"), std::move(arguments), module.path);
}

bool Interpreter::execute(const std::vector<Statement>& statements, Frame& frame, Value& returned) {
  for (const auto& statement : statements) {
    const Nested nested(*this, frame, statement.line);
    switch (statement.kind) {
      case Statement::Kind::assign:
        assign(statement, frame);
        break;
      case Statement::Kind::evaluate:
        evaluate(statement.value, frame);
        break;
      case Statement::Kind::give:
        returned = evaluate(statement.value, frame);
        return true;
      case Statement::Kind::branch: {
        const bool taken = is_true(statement.value, frame);
        if (execute(taken ? statement.body : statement.otherwise, frame, returned)) return true;
        break;
      }
      case Statement::Kind::repeat:
      case Statement::Kind::iterate:
        if (execute_loop(statement, frame, returned)) return true;
        break;
      case Statement::Kind::pass:
        break;
    }
  }
  return false;
}

bool Interpreter::execute_loop(const Statement& loop, Frame& frame, Value& returned) {
  if (loop.kind == Statement::Kind::repeat) {
    while (is_true(loop.value, frame)) {
      const Nested nested(*this, frame, loop.line);
      if (execute(loop.body, frame, returned)) return true;
    }
    return false;
  }
  const auto range = evaluate(loop.value, frame);
  const auto* count = range.as<std::int64_t>();
  const auto* list = range.list();
  if (!count && !list) fail(frame, loop.line, "loops over what is neither a range nor a list");
  // The list may change meanwhile.
  for (std::int64_t i = 0; i < (count ? *count : static_cast<std::int64_t>(list->size())); ++i) {
    const Nested nested(*this, frame, loop.line);
    frame.variables[loop.targets[0]] = count ? Value{i} : (*list)[static_cast<std::size_t>(i)];
    if (execute(loop.body, frame, returned)) return true;
  }
  return false;
}

void Interpreter::assign(const Statement& statement, Frame& frame) {
  auto value = evaluate(statement.value, frame);
  if (!statement.unpacks) {
    frame.variables[statement.targets[0]] = std::move(value);
    return;
  }
  const auto* items = value.list();
  if (!items || items->size() != statement.targets.size()) {
    fail(frame, statement.line,
         "takes " + std::to_string(statement.targets.size()) +
             " values from what does not hold as many");
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    frame.variables[statement.targets[i]] = (*items)[i];
  }
}

bool Interpreter::is_true(const Expression& condition, Frame& frame) {
  const auto value = evaluate(condition, frame);
  if (const auto* flag = value.as<bool>()) return *flag;
  fail(frame, condition.line, "has a condition that depends on the image");
}

aten::Value Interpreter::tensor(std::size_t index) {
  auto& made = tensors_[index];
  if (made.is_none()) {
    const auto& [name, array] = archive_.tensors[index];
    made = program_.add_constant(name, to_tensor(array));
  }
  return made;
}

aten::Value Interpreter::stored(const formats::TorchScript::Value& value, const Frame& frame,
                                int line) {
  using Kind = formats::TorchScript::Value::Kind;
  switch (value.kind) {
    case Kind::none:
      return {};
    case Kind::boolean:
      return {value.integer != 0};
    case Kind::integer:
      return {value.integer};
    case Kind::real:
      return {value.real};
    case Kind::text:
      return text(value.text, frame, line);
    case Kind::tensor:
      return tensor(value.index);
    case Kind::object:
      return {Value::Object{value.index}};
    case Kind::list: {
      charge(value.items.size(), frame, line);
      std::vector<Value> items;
      for (const auto& item : value.items) items.push_back(stored(item, frame, line));
      return aten::make_list(std::move(items));
    }
    case Kind::unknown:
      break;
  }
  fail(frame, line, "reads an attribute of a kind that is not known");
}

aten::Value Interpreter::attribute(const Value& object, const std::string& name, const Frame& frame,
                                   int line) {
  const auto* self = object.as<Value::Object>();
  if (!self) {
    if (object.tensor()) {  // x.dtype, x.device, ...
      return program_.run({name, {{"", object}}, name, place(frame, line)});
    }
    fail(frame, line, "reads the attribute '" + name + "' of what is not a module");
  }
  const auto& attributes = archive_.objects[self->index].attributes;
  const auto found = attributes.find(name);
  if (found == attributes.end()) fail(frame, line, "the attribute '" + name + "' is missing");
  return stored(found->second, frame, line);
}

}  // namespace zsq::models::torchscript
