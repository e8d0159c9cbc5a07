// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tables/cells.h"

#include <algorithm>
#include <span>

#include "formats/atomic_file.h"
#include "pipeline/report/finished_run.h"
#include "pipeline/scheme.h"
#include "pipeline/version.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "cell.txt";
constexpr std::int64_t kBankImages = 256;

fs::path key_file(const ReproduceCell& cell) { return fs::path(cell.folder) / kKey; }

std::string scheme_of(const Recipe& recipe) {
  return Scheme{recipe.quantize.weights.num_bits, recipe.quantize.activations.num_bits}.name();
}

// Settings of the command line that a reader of the published value has to know of.
std::vector<std::string> changes(const std::vector<std::string>& settings, const Recipe& published,
                                 const Recipe& run) {
  std::vector<std::string> changes;
  if (run.finetune.iterations != published.finetune.iterations)
    changes.push_back(std::to_string(run.finetune.iterations) + " of " +
                      std::to_string(published.finetune.iterations) + " iterations");
  for (const std::string& setting : settings)
    if (!setting.starts_with("data.") && !setting.starts_with("finetune.iterations=") &&
        (!setting.starts_with("process.") || setting.starts_with("process.time_budget=")))
      changes.push_back(setting);
  return changes;
}

// A bank is of a network, the settings that make its images, and their number.
fs::path bank_of(const Recipe& recipe, const std::string& model_sha256, std::int64_t images,
                 const fs::path& folder) {
  Recipe decides;
  decides.images = recipe.images;
  decides.data = recipe.data;
  decides.data.eval_data.clear();
  const std::string text =
      "zsq " + version() + model_sha256 + std::to_string(images) + to_yaml(decides);
  return folder /
         ("bank_" + formats::sha256(std::as_bytes(std::span(text))).substr(0, 12) + ".safetensors");
}

// Weights, data and bank are identified by their content; their paths may change.
std::string key_of(const Table& table, const TableRow& row, const RowInputs& inputs,
                   Recipe recipe) {
  recipe.data.eval_data.clear();
  if (!recipe.generate.bank.empty())
    recipe.generate.bank = fs::path(recipe.generate.bank).filename().string();
  return "zsq " + version() + "\ntable version " + std::to_string(table.version) + ", row " +
         row.name + "\nmodel sha256 " + inputs.model_sha256 + "\ndata sha256 " +
         inputs.data_sha256 + "\n" + to_yaml(recipe);
}

class Planner {
 public:
  Planner(const Table& table, const ReproduceOptions& options, TableInputs& inputs)
      : table_(table), options_(options), inputs_(inputs) {}

  PlannedCell plan(const TableRow& row, std::int64_t number, std::int64_t seed) {
    const RowInputs& inputs = inputs_.of(row.network);
    PlannedCell planned;
    planned.network = row.network;
    std::vector<std::string> settings = own_settings(row);
    const Recipe published = load_recipe(row.recipe, settings);
    std::vector<std::string> given = options_.settings;
    const std::int64_t iterations = load_with(row, settings, given).finetune.iterations;
    if (iterations > 0)
      given.insert(given.end(), options_.training.begin(), options_.training.end());
    settings.insert(settings.end(), given.begin(), given.end());
    if (!inputs.data.empty()) settings.push_back("data.eval_data=" + inputs.data.string());
    Recipe recipe = load_recipe(row.recipe, settings);
    if (!recipe.generate.bank.empty()) {
      planned.bank_images =
          options_.bank_images.value_or(row.bank_images > 0 ? row.bank_images : kBankImages);
      planned.bank = bank_of(recipe, inputs.model_sha256, planned.bank_images, options_.output);
      settings.push_back("generate.bank=" + planned.bank.string());
    }
    describe(planned.cell, row, inputs, published);
    planned.cell.changed =
        row.published ? changes(given, published, recipe) : std::vector<std::string>{};
    if (row.bank_images > 0 && planned.bank_images != row.bank_images)
      planned.cell.changed.push_back("a bank of " + std::to_string(planned.bank_images) +
                                     " images instead of " + std::to_string(row.bank_images));
    planned.cell.number = number;
    planned.cell.seed = seed;
    planned.cell.folder = (options_.output / row.name / ("seed" + std::to_string(seed))).string();
    planned.cell.command = command(row, planned.cell, inputs, settings);
    settings.push_back("process.seed=" + std::to_string(seed));
    planned.recipe = load_recipe(row.recipe, settings);
    planned.cell.scheme = scheme_of(planned.recipe);
    planned.key = key_of(table_, row, inputs, planned.recipe);
    read_result(planned);
    return planned;
  }

 private:
  // As the table has it, on its network.
  std::vector<std::string> own_settings(const TableRow& row) const {
    std::vector<std::string> settings = row.settings;
    if (row.network.empty()) return settings;
    const TableNetwork& network = table_.networks.at(row.network);
    if (!network.preset.empty()) settings.push_back("data.preset=" + network.preset);
    if (!network.arch.empty()) settings.push_back("model.arch=" + network.arch);
    return settings;
  }

  static Recipe load_with(const TableRow& row, std::vector<std::string> settings,
                          const std::vector<std::string>& more) {
    settings.insert(settings.end(), more.begin(), more.end());
    return load_recipe(row.recipe, settings);
  }

  void describe(ReproduceCell& cell, const TableRow& row, const RowInputs& inputs,
                const Recipe& published) const {
    cell.row = row.name;
    cell.network = row.network;
    cell.about = !row.about.empty() ? row.about : published.about;
    cell.lacking = inputs.lacking;
    cell.wrong = inputs.wrong;
    cell.published = row.published;
    cell.note = row.note;
    if (row.network.empty()) return;
    const TableNetwork& network = table_.networks.at(row.network);
    cell.about = !row.about.empty() ? row.about : network.about + ", " + scheme_of(published);
    cell.published_teacher = network.top1;
    cell.published_images = published.data.eval_images > 0
                                ? published.data.eval_images
                                : table_.data_sets.at(network.data_set).images;
  }

  std::vector<std::string> command(const TableRow& row, const ReproduceCell& cell,
                                   const RowInputs& inputs,
                                   const std::vector<std::string>& settings) const {
    const std::string model = inputs.model.empty() ? "MODEL" : inputs.model.string();
    std::vector<std::string> words{
        options_.program.string(), "quantize",      model,      "--recipe", row.recipe, "--seed",
        std::to_string(cell.seed), "--output_path", cell.folder};
    for (const std::string& setting : settings) {
      words.emplace_back("--set");
      words.push_back(setting);
    }
    return words;
  }

  const Table& table_;
  const ReproduceOptions& options_;
  TableInputs& inputs_;
};

}  // namespace

std::vector<TableRow> chosen_rows(const Table& table, const ReproduceOptions& options) {
  std::vector<TableRow> rows = table.rows;
  if (options.rows.empty()) return rows;
  std::erase_if(rows, [&](const TableRow& row) {
    return std::none_of(options.rows.begin(), options.rows.end(),
                        [&](const std::string& start) { return row.name.starts_with(start); });
  });
  if (rows.empty()) throw Error(ErrorCode::usage, "no row of the table has such a name");
  return rows;
}

std::vector<PlannedCell> plan_cells(const Table& table, const ReproduceOptions& options,
                                    TableInputs& inputs) {
  Planner planner(table, options, inputs);
  std::vector<PlannedCell> cells;
  for (const TableRow& row : table.rows)
    for (const std::int64_t seed : options.seeds.empty() ? table.seeds : options.seeds)
      cells.push_back(planner.plan(row, static_cast<std::int64_t>(cells.size()), seed));
  return cells;
}

bool is_of(const PlannedCell& planned) {
  std::error_code unreachable;
  if (!planned.cell.lacking.empty() || !fs::exists(key_file(planned.cell), unreachable))
    return false;
  return formats::read_text(key_file(planned.cell)) == planned.key;
}

void mark(const PlannedCell& planned) {
  formats::write_atomically(key_file(planned.cell), std::string_view(planned.key));
}

void read_result(PlannedCell& planned) {
  ReproduceCell& cell = planned.cell;
  const fs::path folder = cell.folder;
  // A run removes its checkpoint last: where there is one, something of its end is missing.
  if (!is_of(planned) || !fs::exists(folder / "report.json") || fs::exists(folder / "checkpoint"))
    return;
  const Json json = read_report(folder);
  const auto value = [](const Json& object, const char* key) {
    return object.contains(key) && object[key].is_number()
               ? std::optional<double>(object[key].get<double>())
               : std::nullopt;
  };
  cell.finished = true;
  if (json.contains("student")) {
    cell.top1 = value(json["student"], "top1");
    cell.images = static_cast<std::int64_t>(value(json["student"], "images").value_or(0));
  }
  if (json.contains("teacher")) cell.teacher_top1 = value(json["teacher"], "top1");
  cell.agreement = value(json, "agreement");
  cell.divergence = value(json, "divergence");
  cell.iterations = static_cast<std::int64_t>(value(json, "iterations").value_or(0));
  cell.seconds = value(json, "seconds").value_or(0);
}

}  // namespace zsq::pipeline
