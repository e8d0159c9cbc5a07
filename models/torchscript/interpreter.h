// SPDX-License-Identifier: Apache-2.0
// Follows the code of a TorchScript archive, statement by statement, and hands every operator to
// aten::Program. Conditions and loops are decided here, so they may depend on sizes and settings,
// never on the image.
#pragma once
#include <map>

#include "formats/script_syntax.h"
#include "formats/torchscript.h"
#include "models/aten/program.h"

namespace zsq::models::torchscript {

class Interpreter {
 public:
  Interpreter(const formats::TorchScript& archive, aten::Program& program)
      : archive_(archive), program_(program), tensors_(archive.tensors.size()) {}

  // What forward() of the network returns.
  aten::Value run(const aten::Value& image);

 private:
  using Value = aten::Value;
  struct Frame {
    std::string file;  // of the code that runs
    std::string path;  // of the module that it belongs to
    std::map<std::string, Value> variables = {};
  };
  struct Found {
    const formats::ScriptFunction* function;
    std::string file;
  };

  [[noreturn]] void fail(const Frame& frame, int line, const std::string& what) const;
  std::string place(const Frame& frame, int line) const;
  // Bounds how long and how deep the code of a hostile file can run.
  class Nested {
   public:
    Nested(Interpreter& interpreter, const Frame& frame, int line);
    ~Nested() { --interpreter_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Interpreter& interpreter_;
  };

  // Copies count as steps: a loop could fill the memory with them.
  void charge(std::size_t steps, const Frame& frame, int line);
  Value text(const std::string& given, const Frame& frame, int line);

  Found find(const std::string& qualified, const std::string& what);
  Value call(const Found& found, std::vector<aten::Call::Argument> arguments, std::string path);
  Value call_method(const Value& object, const std::string& method,
                    std::vector<aten::Call::Argument> arguments);

  // Whether a return statement was met; its value is in `returned`.
  bool execute(const std::vector<formats::Statement>& statements, Frame& frame, Value& returned);
  bool execute_loop(const formats::Statement& loop, Frame& frame, Value& returned);
  void assign(const formats::Statement& statement, Frame& frame);
  bool is_true(const formats::Expression& condition, Frame& frame);

  Value evaluate(const formats::Expression& expression, Frame& frame);
  Value evaluate_items(const std::vector<formats::Expression>& items, Frame& frame);
  Value evaluate_call(const formats::Expression& expression, Frame& frame);
  std::optional<Value> evaluate_builtin(const std::string& name,
                                        const formats::Expression& expression, Frame& frame);
  Value name(const formats::Expression& expression, const Frame& frame);
  Value attribute(const Value& object, const std::string& name, const Frame& frame, int line);
  Value stored(const formats::TorchScript::Value& value, const Frame& frame, int line);
  Value tensor(std::size_t index);

  const formats::TorchScript& archive_;
  aten::Program& program_;
  std::map<std::string, formats::ScriptFile> files_;  // parsed once needed
  std::vector<Value> tensors_;                        // made once needed
  std::int64_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace zsq::models::torchscript
