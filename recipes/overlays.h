// SPDX-License-Identifier: Apache-2.0
// A chain of names, as instant+gptq+tables: a recipe, then overlays, each of which sets some keys.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recipes/recipe.h"

namespace zsq::recipes {

// Follows a chain while its files are read, so that no overlay undoes another one silently.
class OverlayChain {
 public:
  // `decided`: keys that the command sets after the chain; overlays may differ about them.
  OverlayChain(Recipe& recipe, const std::set<std::string>& decided)
      : recipe_(recipe), decided_(decided) {}

  // The next name of the chain, and after its files are read its end. `kind`: what its own file
  // says; none for a file of the user that does not. Error(usage) of end(): a recipe that follows
  // another one, or an overlay that changes what an earlier one set without saying so.
  void begin(const std::string& name);
  void end(std::optional<RecipeKind> kind);

  // What the file at hand declares: keys that it replaces on purpose, and keys that it sets only if
  // no overlay before it did.
  void declare(const std::vector<std::string>& overrides, const std::vector<std::string>& yields);
  bool is_left_to_earlier(const std::string& key) const {
    return yields_.count(key) > 0 && written_.count(key) > 0;
  }
  void note(const std::string& key) { keys_.insert(key); }

 private:
  using Values = std::map<std::string, std::string>;  // by key, as YAML writes them
  struct Written {
    std::string overlay, value;
  };

  static Values values_of(const Recipe& recipe);
  void require_agreement(const Values& now) const;

  Recipe& recipe_;
  const std::set<std::string>& decided_;
  std::map<std::string, Written> written_;  // by the overlays so far
  bool first_ = true;
  // Of the name at hand.
  std::string name_;
  Values before_;
  std::int64_t iterations_before_ = 0;
  bool reconstructed_before_ = false;
  std::set<std::string> keys_, overrides_, yields_;
};

}  // namespace zsq::recipes
