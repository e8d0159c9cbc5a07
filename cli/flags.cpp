// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "cli/manual_page.h"
#include "core/choice.h"
#include "core/error.h"
#include "core/nearest_name.h"
#include "pipeline/scheme.h"
#include "recipes/effort.h"

namespace zsq::cli {
namespace {

namespace po = boost::program_options;

// --eval-data and --eval_data are one flag.
std::vector<std::string> with_underscores(const Arguments& arguments) {
  std::vector<std::string> words;
  for (std::string word : arguments) {
    if (word.starts_with("--"))
      std::replace(word.begin() + 2, std::find(word.begin(), word.end(), '='), '-', '_');
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

Flags::Flags(std::string usage, std::string about)
    : usage_(std::move(usage)), about_(std::move(about)), visible_("Flags", 100, 50) {
  hidden_.add_options()("manual", po::bool_switch());
}

void Flags::text(const std::string& name, const std::string& value_name, const std::string& help) {
  visible_.add_options()(name.c_str(), po::value<std::string>()->value_name(value_name),
                         help.c_str());
}

void Flags::texts(const std::string& name, const std::string& value_name, const std::string& help) {
  visible_.add_options()(name.c_str(),
                         po::value<std::vector<std::string>>()->composing()->value_name(value_name),
                         help.c_str());
}

void Flags::toggle(const std::string& name, const std::string& help) {
  visible_.add_options()(name.c_str(), po::bool_switch(), help.c_str());
}

void Flags::setting(const std::string& name, const std::string& value_name, const std::string& help,
                    std::string key) {
  text(name, value_name, help);
  settings_.emplace_back(name, std::move(key));
}

void Flags::toggle_setting(const std::string& name, const std::string& help, std::string key) {
  toggle(name, help);
  toggles_.emplace_back(name, std::move(key));
}

void Flags::preprocessing() {
  setting("preset", "NAME|FILE",
          "preprocessing of images: a name, preprocessor_config.json, or config.json of timm; what "
          "zsq wrote records its own",
          "data.preset");
  texts("set", "KEY=VALUE", "one recipe setting, as data.size=240; may be given many times");
}

void Flags::arithmetic() {
  text("arithmetic", "exact|avx2",
       "avx2: an exported ONNX file as x86 processors without VNNI compute it, where sums of two "
       "products saturate in 16 bits (default: exact)");
}

Arithmetic Flags::chosen_arithmetic() const {
  return has("arithmetic") ? choice<Arithmetic>("arithmetic", get("arithmetic"), "--arithmetic: ")
                           : Arithmetic::exact;
}

void Flags::common() {
  setting("arch", "NAME", "built-in architecture, for files that hold weights only", "model.arch");
  setting("image_size", "N|HxW", "height and width, where the file leaves them open",
          "model.image_size");
  setting("channels", "N", "channels of images, where the file leaves their number open",
          "model.channels");
  setting("output", "MEANING|NAME=MEANING,...",
          "what outputs mean (logits, scores, values, map), where the network does not tell",
          "model.output");
  setting("bn_stats", "FILE", "safetensors with the statistics of BatchNorm folded on export",
          "model.bn_stats");
  setting("device", "auto|cpu|cuda", "where tensors live (auto: a GPU if one can be used)",
          "process.device");
  setting("threads", "N", "CPU threads", "process.threads");
  text("format", "human|json", "form of the result on stdout");
  text("log_level", "LEVEL", "debug, info or warning");
  toggle("quiet", "no progress and no messages");
  toggle("help,h", "this text");
}

void Flags::positional(const std::string& name, int count) {
  hidden_.add_options()(name.c_str(), po::value<std::vector<std::string>>());
  positional_.add(name.c_str(), count);
}

bool Flags::parse(const Arguments& arguments) {
  po::options_description all;
  all.add(visible_).add(hidden_);
  const std::string hint = "; see `" + usage_.substr(0, usage_.find(' ', 4)) + " --help`";
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(with_underscores(arguments))
                  .options(all)
                  .positional(positional_)
                  .style(style)
                  .run(),
              values_);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto& option : visible_.options()) known.push_back("--" + option->long_name());
    const std::string near = nearest_name(error.get_option_name(), known);
    const bool settings = visible_.find_nothrow("set", false) != nullptr;
    throw Error(ErrorCode::usage,
                "unknown flag '" + error.get_option_name() + "'" +
                    (!near.empty() ? "; did you mean '" + near + "'?"
                     : settings    ? "; recipe settings go by --set section.key=value"
                                   : "") +
                    hint);
  } catch (const po::error& error) {
    throw Error(ErrorCode::usage, error.what() + hint);
  }
  if (on("manual")) {
    print_manual_of(std::cout, usage_, about_, visible_);
    return false;
  }
  if (!on("help")) return true;
  std::cout << "usage: " << usage_ << "\n" << about_ << "\n\n" << visible_;
  return false;
}

std::string Flags::get(const std::string& name) const {
  return has(name) ? values_[name].as<std::string>() : "";
}

std::vector<std::string> Flags::list(const std::string& name) const {
  return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

std::string Flags::required(const std::string& name, const std::string& what) const {
  const auto values = list(name);
  if (values.empty()) throw Error(ErrorCode::usage, what + " is missing; usage: " + usage_);
  return values.front();
}

double Flags::number(const std::string& name, double fallback) const {
  if (!has(name)) return fallback;
  const std::string word = get(name);
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(word, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  if (word.empty() || used != word.size() || !std::isfinite(value))
    throw Error(ErrorCode::usage, "--" + name + ": '" + word + "' is not a number");
  return value;
}

std::int64_t Flags::count(const std::string& name, std::int64_t fallback) const {
  const double value = number(name, static_cast<double>(fallback));
  if (value >= 1 && value <= 1e9 && value == std::floor(value))
    return static_cast<std::int64_t>(value);
  throw Error(ErrorCode::usage,
              "--" + name + ": '" + get(name) + "' is not a whole number of 1 or more");
}

bool Flags::json() const {
  const std::string format = has("format") ? get("format") : "human";
  if (format != "human" && format != "json")
    throw Error(ErrorCode::usage, "--format: '" + format + "' is neither human nor json");
  return format == "json";
}

LogLevel Flags::log_level() const {
  const std::string level = has("log_level") ? get("log_level") : "info";
  if (level == "debug") return LogLevel::debug;
  if (level == "info") return LogLevel::info;
  if (level == "warning") return LogLevel::warning;
  throw Error(ErrorCode::usage, "--log_level: '" + level + "' is not debug, info or warning");
}

std::vector<std::string> Flags::overrides() const {
  std::vector<std::string> overrides;
  if (has("scheme")) {
    const Scheme scheme = Scheme::parse(get("scheme"));
    overrides.push_back("quantize.weights.num_bits=" + std::to_string(scheme.weight_bits));
    overrides.push_back("quantize.activations.num_bits=" + std::to_string(scheme.activation_bits));
  }
  for (const auto& [flag, key] : settings_)
    if (has(flag)) overrides.push_back(key + "=" + get(flag));
  for (const auto& [flag, key] : toggles_)
    if (on(flag)) overrides.push_back(key + "=true");
  for (const std::string& override : list("set")) overrides.push_back(override);
  return overrides;
}

Recipe Flags::recipe(const std::string& fallback) const {
  if (has("effort")) {
    if (has("recipe"))
      throw Error(ErrorCode::usage,
                  "--effort chooses a recipe, and --recipe names one; give only one of them");
    return load_effort(choice<Effort>("effort", get("effort"), "--effort: "), overrides());
  }
  return load_recipe(has("recipe") ? get("recipe") : fallback, overrides());
}

}  // namespace zsq::cli
