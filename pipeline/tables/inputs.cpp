// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tables/inputs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "core/nearest_name.h"
#include "formats/atomic_file.h"
#include "formats/json.h"
#include "pipeline/evaluate.h"
#include "pipeline/report/json.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr double kTeacherTolerance = 0.3;  // points between two decoders and resizers
constexpr const char* kOtherInputs =
    "; give these, or --other_inputs to run all the same and have the table say so";

// PATH is for any name, NAME=PATH for one of `names`.
template <class Value>
std::map<std::string, fs::path> by_name(const std::vector<std::string>& words, const char* flag,
                                        const std::map<std::string, Value>& names) {
  std::map<std::string, fs::path> paths;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos || name.find('/') != std::string::npos) {
      paths[""] = word;
    } else if (names.contains(name)) {
      paths[name] = word.substr(equals + 1);
    } else {
      std::vector<std::string> known;
      for (const auto& [each, value] : names) known.push_back(each);
      throw Error(ErrorCode::usage,
                  "--" + std::string(flag) + ": " +
                      unknown_name_message("network or data set of this table", name, known));
    }
  }
  for (const auto& [name, path] : paths)
    if (!fs::exists(path))
      throw Error(ErrorCode::bad_input,
                  "--" + std::string(flag) + ": there is no '" + path.string() + "'");
  return paths;
}

// A path without a name is only clear where there is one thing that it can be.
void require_one(const std::map<std::string, fs::path>& given, const char* flag,
                 const std::set<std::string>& wanted) {
  if (!given.contains("") || wanted.size() <= 1) return;
  std::string names;
  for (const std::string& name : wanted) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::usage, "--" + std::string(flag) +
                                    ": these rows need several; write NAME=PATH " +
                                    "(names: " + names + "), or choose rows by --rows");
}

std::string files_of(const TableNetwork& network) {
  std::string text;
  for (const WeightsFile& file : network.files)
    text += (text.empty() ? "" : ", or ") + file.name + " (from " + file.from + ")";
  return text;
}

std::string percent(double value) { return pipeline::format("%.2f %%", value); }

std::string wrong_weights(const TableNetwork& network, const fs::path& path,
                          const std::string& sha256) {
  bool known = false;
  for (const WeightsFile& file : network.files) {
    known = known || !file.sha256.empty();
    if (file.sha256 == sha256) return "";
    if (!file.sha1.empty() && path.filename() == file.name &&
        formats::sha1_of_file(path) != file.sha1)
      return "'" + path.string() + "' is damaged or another file: its SHA-1 is not " + file.sha1 +
             "; it comes from " + file.from;
  }
  if (!known) return "";
  return "'" + path.string() + "' does not hold the weights of the table (SHA-256 " + sha256 +
         "), which are " + files_of(network);
}

// One object per combination of weights, images and preprocessing.
class FloatAccuracies {
 public:
  explicit FloatAccuracies(fs::path path) : path_(std::move(path)) {
    if (!fs::exists(path_)) return;
    values_ = formats::read_json<Json>(path_);
    if (!values_.is_object()) values_ = Json::object();
  }
  const Json* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &*found;
  }
  void keep(const std::string& key, const EvalReport& report) {
    values_[key] = {{"top1", report.top1}, {"images", report.images}};
    formats::write_atomically(path_, std::string_view(dump(values_, 1) + "\n"));
  }

 private:
  fs::path path_;
  Json values_ = Json::object();
};

// Where a part of the images is measured, by three standard errors more.
double allowed(const TableNetwork& network, std::int64_t images, std::int64_t all) {
  if (images >= all) return kTeacherTolerance;
  const double share = network.top1 / 100;
  return kTeacherTolerance + 300 * std::sqrt(share * (1 - share) / static_cast<double>(images));
}

}  // namespace

std::string sha256_of_files(const fs::path& path) {
  if (!fs::is_directory(path)) return formats::sha256_of_file(path);
  std::vector<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      lines.push_back(fs::relative(entry.path(), path).string() + " " +
                      std::to_string(entry.file_size()) + "\n");
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line;
  return formats::sha256(std::as_bytes(std::span(text)));
}

TableInputs::TableInputs(const Table& table, const ReproduceOptions& options)
    : table_(table),
      options_(options),
      models_(by_name(options.models, "model", table.networks)),
      data_(by_name(options.data, "data", table.data_sets)) {
  if (!options.weights_dir.empty() && !fs::is_directory(options.weights_dir))
    throw Error(ErrorCode::usage,
                "--weights_dir: '" + options.weights_dir.string() + "' is not a folder");
  std::set<std::string> networks, data_sets;
  for (const TableRow& row : table.rows) {
    networks.insert(row.network);
    if (!row.network.empty()) data_sets.insert(table.networks.at(row.network).data_set);
  }
  require_one(models_, "model", networks);
  require_one(data_, "data", data_sets);
}

const RowInputs& TableInputs::of(const std::string& network) {
  const auto known = found_.find(network);
  return known != found_.end() ? known->second : found_[network] = find(network);
}

fs::path TableInputs::weights_of(const std::string& network) const {
  for (const std::string& name : {network, std::string()})
    if (const auto given = models_.find(name); given != models_.end()) return given->second;
  if (network.empty() || options_.weights_dir.empty()) return {};
  for (const WeightsFile& file : table_.networks.at(network).files)
    if (fs::exists(options_.weights_dir / file.name)) return options_.weights_dir / file.name;
  return {};
}

fs::path TableInputs::data_of(const std::string& network) const {
  const std::string name = network.empty() ? "" : table_.networks.at(network).data_set;
  for (const std::string& each : {name, std::string()})
    if (const auto given = data_.find(each); given != data_.end()) return given->second;
  return {};
}

RowInputs TableInputs::find(const std::string& name) const {
  RowInputs inputs{.model = weights_of(name), .data = data_of(name)};
  if (!inputs.model.empty()) inputs.model_sha256 = formats::sha256_of_file(inputs.model);
  if (!inputs.data.empty()) inputs.data_sha256 = sha256_of_files(inputs.data);
  if (name.empty()) {
    if (inputs.model.empty()) inputs.lacking.emplace_back("a network: --model FILE");
    return inputs;
  }
  const TableNetwork& network = table_.networks.at(name);
  const TableDataSet& data = table_.data_sets.at(network.data_set);
  if (inputs.model.empty())
    inputs.lacking.push_back("weights " + files_of(network) + ": in --weights_dir, or --model " +
                             name + "=FILE");
  else
    inputs.wrong = wrong_weights(network, inputs.model, inputs.model_sha256);
  if (inputs.data.empty())
    inputs.lacking.push_back("data, " + data.about + " (from " + data.from + "): --data " +
                             network.data_set + "=PATH");
  return inputs;
}

void TableInputs::check(const std::string& name, const Recipe& recipe, Observer& observer) {
  if (name.empty() || options_.other_inputs) return;
  const RowInputs& inputs = of(name);
  if (!inputs.wrong.empty()) throw Error(ErrorCode::bad_input, inputs.wrong + kOtherInputs);
  const TableNetwork& network = table_.networks.at(name);
  const std::int64_t all = table_.data_sets.at(network.data_set).images;
  const std::int64_t wanted = recipe.data.eval_images > 0 ? recipe.data.eval_images : all;
  FloatAccuracies known(options_.output / "inputs.json");
  const std::string key = inputs.model_sha256 + " " + inputs.data_sha256 + " " +
                          std::to_string(recipe.data.eval_images) + " " + recipe.data.preset;
  if (known.find(key) == nullptr) {
    observer.on_message(LogLevel::info, "measuring " + inputs.model.string() + " in float");
    EvaluateOptions options{recipe.model, recipe.data, recipe.process};
    options.data.eval_data = inputs.data.string();
    known.keep(key, evaluate(inputs.model, options, &observer));
  }
  const Json& measured = *known.find(key);
  const std::int64_t images = measured.value("images", std::int64_t{0});
  const double top1 = measured.value("top1", 0.0);
  if (images != wanted)
    throw Error(ErrorCode::bad_input,
                "'" + inputs.data.string() + "' holds " + std::to_string(images) +
                    " images; the table needs " + std::to_string(wanted) + " of " +
                    table_.data_sets.at(network.data_set).about + ", from " +
                    table_.data_sets.at(network.data_set).from + kOtherInputs);
  if (std::abs(top1 - network.top1) > allowed(network, images, all))
    throw Error(ErrorCode::bad_input, "'" + inputs.model.string() + "' has a top-1 of " +
                                          percent(top1) + " in float on '" + inputs.data.string() +
                                          "'; the network of the table has " +
                                          percent(network.top1) + ": " + files_of(network) +
                                          ", preprocessing " + recipe.data.preset + kOtherInputs);
}

}  // namespace zsq::pipeline
