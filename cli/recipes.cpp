// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <utility>

#include "cli/flags.h"
#include "cli/verbs.h"

namespace zsq::cli {
namespace {

std::vector<Recipe> recipes_of(RecipeKind kind) {
  std::vector<Recipe> found;
  for (const std::string& name : recipe_names())
    if (Recipe recipe = load_recipe(name); recipe.kind == kind) found.push_back(std::move(recipe));
  return found;
}

// Those with figures, the fastest first.
void print_choice(RecipeKind kind, const char* heading) {
  std::vector<Recipe> shown;
  for (Recipe& recipe : recipes_of(kind))
    if (!recipe.when.empty()) shown.push_back(std::move(recipe));
  std::stable_sort(shown.begin(), shown.end(), [](const Recipe& a, const Recipe& b) {
    return std::stod(a.seconds) < std::stod(b.seconds);
  });
  std::printf("%-20s %-16s %-24s %s\n", heading, "seconds", "loss", "when to take it");
  for (const Recipe& r : shown)
    std::printf("  %-18s %-16s %-24s %s\n", r.name.c_str(), r.seconds.c_str(), r.loss.c_str(),
                r.when.c_str());
}

void print_all() {
  for (const auto& [kind, heading] :
       {std::pair{RecipeKind::recipe, "Recipes"},
        {RecipeKind::overlay, "Overlays, joined to a recipe by +"},
        {RecipeKind::paper, "Published experiments, and overlays for them"},
        {RecipeKind::ablation, "Rows of `zsq reproduce ablation`"}}) {
    std::printf("%s\n", heading);
    for (const Recipe& r : recipes_of(kind))
      std::printf("  %-32s %s%s%s\n", r.name.c_str(), r.about.c_str(),
                  r.expects.empty() ? "" : "; ", r.expects.c_str());
  }
}

// Sections in the order in which users need them.
constexpr std::array<std::pair<const char*, const char*>, 10> kSections{{
    {"data.", "images to measure with, and how images are preprocessed"},
    {"model.", "what the file of the network leaves open"},
    {"quantize.", "bits, ranges, rounding and corrections"},
    {"mixed.", "a budget for which each layer gets bits of its own"},
    {"process.", "seed, device, threads, time and memory"},
    {"export.", "which files are written"},
    {"generate.images.",
     "synthetic images that rounding, reconstruction and fine-tuning learn from"},
    {"reconstruct.", "block reconstruction"},
    {"finetune.", "fine-tuning end to end"},
    {"generate.", "the generator that fine-tuning trains if it has no images, and image banks"},
}};

std::size_t section_of(const std::string& key) {
  const auto found = std::find_if(kSections.begin(), kSections.end(), [&](const auto& section) {
    return key.starts_with(section.first);
  });
  return static_cast<std::size_t>(found - kSections.begin());
}

// By section; in each the settings that recipes and overlays change first.
void print_settings(const Recipe& recipe) {
  std::vector<SettingHelp> settings = describe_settings(recipe);
  const std::vector<SettingHelp> defaults = describe_settings(Recipe{});
  std::vector<bool> changed(settings.size());
  for (const RecipeKind kind : {RecipeKind::recipe, RecipeKind::overlay})
    for (const Recipe& known : recipes_of(kind)) {
      const std::vector<SettingHelp> values = describe_settings(known);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i].value != defaults[i].value) changed[i] = true;
    }
  std::vector<std::size_t> order(settings.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair{section_of(settings[a].key), !changed[a]} <
           std::pair{section_of(settings[b].key), !changed[b]};
  });
  std::size_t last = kSections.size();
  for (const std::size_t i : order) {
    const SettingHelp& s = settings[i];
    const std::size_t section = section_of(s.key);
    if (std::exchange(last, section) != section)
      std::printf("# %s\n", kSections.at(section).second);
    std::printf("%s: %s\n    %s%s%s%s%s%s\n", s.key.c_str(), s.value.c_str(), s.help.c_str(),
                s.range.empty() ? "" : " (", s.range.c_str(), s.range.empty() ? "" : ")",
                s.source.empty() ? "" : "; ", s.source.c_str());
  }
}

}  // namespace

int recipes(const Arguments& arguments) {
  Flags flags("zsq recipes [NAME|FILE]",
              "Without a name: the recipes and overlays that users need. With one: every setting "
              "it resolves to, as YAML.\n"
              "A recipe and overlays joined by '+' apply one after the other.");
  flags.positional("name", 1);
  flags.toggle("all", "every built-in recipe, those of papers and of the ablation too");
  flags.toggle("settings", "every recipe key with default, range and meaning, by section");
  flags.texts("set", "KEY=VALUE", "one recipe setting; may be given many times");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  if (flags.on("settings")) {
    print_settings(flags.recipe());
  } else if (flags.has("name")) {
    std::cout << to_yaml(load_recipe(flags.list("name").front(), flags.list("set")));
  } else if (flags.on("all")) {
    print_all();
  } else {
    print_choice(RecipeKind::recipe, "Recipes");
    std::printf("\n");
    print_choice(RecipeKind::overlay, "Overlays");
    std::printf(
        "\nOverlays are joined to a recipe by +, as in --recipe instant+gptq+tables. Seconds are "
        "those of the whole\n"
        "command for EfficientNet-Lite0 on two cores, of an overlay with all that it comes after; "
        "loss is in points\n"
        "of top-1. `zsq quantize --effort` chooses for you; `zsq recipes --all` lists the rest.\n");
  }
  return 0;
}

}  // namespace zsq::cli
