// SPDX-License-Identifier: Apache-2.0
// Flags of a verb over Boost.Program_options: long snake_case names (dashes are accepted too), the
// nearest name for an unknown one, and recipes built from flags.
#pragma once
#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/verbs.h"
#include "core/observer.h"
#include "pipeline/arithmetic.h"
#include "recipes/recipe.h"

namespace zsq::cli {

class Flags {
 public:
  // usage: "zsq eval MODEL --data PATH"; about: one or two sentences under it.
  Flags(std::string usage, std::string about);

  void text(const std::string& name, const std::string& value_name, const std::string& help);
  void texts(const std::string& name, const std::string& value_name, const std::string& help);
  void toggle(const std::string& name, const std::string& help);
  // A flag that sets recipe keys, so that its range and its messages are those of the recipe.
  void setting(const std::string& name, const std::string& value_name, const std::string& help,
               std::string key);
  void toggle_setting(const std::string& name, const std::string& help, std::string key);
  void preprocessing();  // --preset and --set
  void arithmetic();     // --arithmetic
  void common();  // --format --quiet --log_level --help, and what every verb takes of a recipe
  // Words without a flag: `count` of them at most (-1: any number), under `name`.
  void positional(const std::string& name, int count);

  // False where only the help, or its part of the manual page, was wanted; it is printed then.
  bool parse(const Arguments& arguments);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  bool on(const std::string& name) const { return values_[name].as<bool>(); }
  std::string get(const std::string& name) const;  // empty if absent
  std::vector<std::string> list(const std::string& name) const;
  std::string required(const std::string& name, const std::string& what) const;
  double number(const std::string& name, double fallback) const;
  std::int64_t count(const std::string& name, std::int64_t fallback) const;  // 1 or more
  Arithmetic chosen_arithmetic() const;
  bool json() const;  // --format json
  LogLevel log_level() const;

  // Of --scheme and the flags declared by setting(), then --set, in this order: key=value.
  std::vector<std::string> overrides() const;
  // --recipe, or what --effort stands for, with these overrides.
  Recipe recipe(const std::string& fallback = "deploy") const;

 private:
  std::string usage_, about_;
  boost::program_options::options_description visible_, hidden_;
  boost::program_options::positional_options_description positional_;
  boost::program_options::variables_map values_;
  std::vector<std::pair<std::string, std::string>> settings_, toggles_;  // flag, recipe key
};

}  // namespace zsq::cli
