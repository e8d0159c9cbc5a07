// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>

#include "cli/flags.h"
#include "cli/verbs.h"

namespace zsq::cli {

int recipes(const Arguments& arguments) {
  Flags flags(
      "zsq recipes [NAME|FILE]",
      "Without a name: the built-in recipes. With one: every setting it resolves to, as YAML.\n"
      "Recipes joined by '+' apply one after the other.");
  flags.positional("name", 1);
  flags.toggle("settings", "every recipe key with default, range and meaning");
  flags.texts("set", "KEY=VALUE", "one recipe setting; may be given many times");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  if (flags.on("settings")) {
    for (const SettingHelp& s : describe_settings(flags.recipe()))
      std::printf("%s: %s\n    %s%s%s%s%s%s\n", s.key.c_str(), s.value.c_str(), s.help.c_str(),
                  s.range.empty() ? "" : " (", s.range.c_str(), s.range.empty() ? "" : ")",
                  s.source.empty() ? "" : "; ", s.source.c_str());
  } else if (flags.has("name")) {
    std::cout << to_yaml(load_recipe(flags.list("name").front(), flags.list("set")));
  } else {
    for (const std::string& name : recipe_names()) {
      const Recipe recipe = load_recipe(name);
      std::printf("%-32s %s%s%s\n", name.c_str(), recipe.about.c_str(),
                  recipe.expects.empty() ? "" : "; ", recipe.expects.c_str());
    }
  }
  return 0;
}

}  // namespace zsq::cli
