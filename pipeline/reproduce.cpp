// SPDX-License-Identifier: Apache-2.0
#include "pipeline/reproduce.h"

#include <algorithm>

#include "formats/atomic_file.h"
#include "pipeline/boundary.h"
#include "pipeline/children.h"
#include "pipeline/generate.h"
#include "pipeline/output_folder.h"
#include "pipeline/report/finished_run.h"
#include "pipeline/select.h"
#include "pipeline/version.h"
#include "recipes/recipe.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "cell.txt";  // what a cell's result is of

struct Row {
  std::string name, recipe;
};

std::vector<Row> rows_of(const ReproduceOptions& options) {
  std::vector<Row> rows;
  if (fs::is_directory(options.table)) {
    for (const auto& entry : fs::directory_iterator(options.table))
      if (entry.path().extension() == ".yaml")
        rows.push_back({entry.path().stem().string(), entry.path().string()});
  } else {
    const std::string prefix = options.table + "/";
    for (const std::string& recipe : recipe_names())
      if (recipe.starts_with(prefix)) rows.push_back({recipe.substr(prefix.size()), recipe});
  }
  if (rows.empty())
    throw Error(ErrorCode::usage, "'" + options.table +
                                      "' is neither a table of built-in recipes (`zsq recipes` "
                                      "lists them, as ablation) nor a folder with *.yaml");
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  const auto wanted = [&](const Row& row) {
    return std::any_of(options.rows.begin(), options.rows.end(),
                       [&](const std::string& start) { return row.name.starts_with(start); });
  };
  if (!options.rows.empty()) std::erase_if(rows, [&](const Row& row) { return !wanted(row); });
  if (rows.empty()) throw Error(ErrorCode::usage, "no row of the table has such a name");
  return rows;
}

class Table {
 public:
  explicit Table(const ReproduceOptions& options) : options_(options) {
    report_.table = options.table;
    report_.model = options.model.string();
    report_.source_sha256 = formats::sha256_of_file(options.model);
    for (const Row& row : rows_of(options))
      for (const std::int64_t seed : options.seeds) add_cell(row, seed);
  }

  ReproduceReport list() && { return std::move(report_); }

  ReproduceReport run(Observer& observer) && {
    pipeline::OutputFolder(options_.output).prepare();
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < report_.cells.size(); ++i)
      if (!report_.cells[i].finished &&
          (!options_.cell || *options_.cell == report_.cells[i].number))
        missing.push_back(i);
    if (options_.cell && (*options_.cell < 0 || *options_.cell >= count()))
      throw Error(ErrorCode::usage, "there is no cell " + std::to_string(*options_.cell) +
                                        "; they are numbered from 0 to " +
                                        std::to_string(count() - 1));
    make_banks(missing, observer);
    run_cells(missing, observer);
    measure(observer);
    formats::write_atomically(options_.output / "table.json",
                              std::string_view(to_json(report_) + "\n"));
    formats::write_atomically(options_.output / "table.md", std::string_view(to_markdown(report_)));
    for (const ReproduceCell& cell : report_.cells)
      if (cell.failed)
        throw Error(ErrorCode::internal,
                    "cell " + std::to_string(cell.number) + " (" + cell.row + ", seed " +
                        std::to_string(cell.seed) + ") ended with exit code " +
                        std::to_string(*cell.failed) + "; see " + log_of(cell).string());
    return std::move(report_);
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(report_.cells.size()); }
  static fs::path log_of(const ReproduceCell& cell) { return fs::path(cell.folder) / "log.txt"; }
  fs::path bank() const { return options_.output / "bank.safetensors"; }

  void add_cell(const Row& row, std::int64_t seed) {
    std::vector<std::string> settings = options_.settings;
    const Recipe own = load_recipe(row.recipe, settings);
    if (own.finetune.iterations > 0)
      settings.insert(settings.end(), options_.training.begin(), options_.training.end());
    if (!own.generate.bank.empty()) settings.push_back("generate.bank=" + bank().string());
    ReproduceCell cell;
    cell.number = count();
    cell.seed = seed;
    cell.row = row.name;
    cell.about = own.about;
    cell.folder = (options_.output / row.name / ("seed" + std::to_string(seed))).string();
    cell.command = {options_.program.string(),
                    "quantize",
                    options_.model.string(),
                    "--recipe",
                    row.recipe,
                    "--seed",
                    std::to_string(seed),
                    "--output_path",
                    cell.folder};
    for (const std::string& setting : settings) {
      cell.command.emplace_back("--set");
      cell.command.push_back(setting);
    }
    settings.push_back("process.seed=" + std::to_string(seed));
    recipes_.push_back(load_recipe(row.recipe, settings));
    keys_.push_back("zsq " + version() + "\nmodel sha256 " + report_.source_sha256 + "\n" +
                    to_yaml(recipes_.back()));
    report_.cells.push_back(std::move(cell));
    read_result(report_.cells.size() - 1);
  }

  bool is_of_this_table(const ReproduceCell& cell) const {
    const fs::path key = fs::path(cell.folder) / kKey;
    std::error_code unreachable;
    if (!fs::exists(key, unreachable)) return false;
    const auto bytes = formats::read_file(key);
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) ==
           keys_[static_cast<std::size_t>(cell.number)];
  }

  void read_result(std::size_t number) {
    ReproduceCell& cell = report_.cells[number];
    if (!is_of_this_table(cell) || !fs::exists(fs::path(cell.folder) / "report.json")) return;
    const pipeline::Json json = pipeline::read_report(cell.folder);
    const auto value = [](const pipeline::Json& object, const char* key) {
      return object.contains(key) && object[key].is_number()
                 ? std::optional<double>(object[key].get<double>())
                 : std::nullopt;
    };
    cell.finished = true;
    if (json.contains("student")) cell.top1 = value(json["student"], "top1");
    if (json.contains("teacher")) cell.teacher_top1 = value(json["teacher"], "top1");
    cell.agreement = value(json, "agreement");
    cell.divergence = value(json, "divergence");
    cell.iterations = static_cast<std::int64_t>(value(json, "iterations").value_or(0));
    cell.seconds = value(json, "seconds").value_or(0);
  }

  void make_banks(const std::vector<std::size_t>& missing, Observer& observer) const {
    for (const std::size_t number : missing) {
      const Recipe& recipe = recipes_[number];
      if (recipe.generate.bank.empty() || fs::exists(bank())) continue;
      observer.on_message(LogLevel::info, "making the image bank " + bank().string());
      GenerateOptions options;
      options.recipe = recipe;
      options.recipe.process.seed = 0;
      options.images = options_.bank_images;
      options.form = "safetensors";
      generate(options_.model, options, options_.output, &observer);
    }
  }

  void run_cells(const std::vector<std::size_t>& missing, Observer& observer) {
    std::vector<pipeline::ChildJob> jobs;
    for (const std::size_t number : missing) {
      const ReproduceCell& cell = report_.cells[number];
      jobs.push_back({cell.command, log_of(cell)});
      const fs::path state = fs::path(cell.folder) / "checkpoint" / "state.safetensors";
      if (is_of_this_table(cell) && fs::exists(state)) jobs.back().words.emplace_back("--resume");
    }
    const auto before = [&](std::size_t job) {
      const ReproduceCell& cell = report_.cells[missing[job]];
      fs::create_directories(cell.folder);
      fs::remove(fs::path(cell.folder) / "report.json");
      formats::write_atomically(fs::path(cell.folder) / kKey,
                                std::string_view(keys_[missing[job]]));
      observer.on_message(LogLevel::info, "cell " + std::to_string(cell.number) + ": " + cell.row +
                                              ", seed " + std::to_string(cell.seed));
    };
    std::int64_t done = 0;
    const auto after = [&](std::size_t job, int code) {
      if (code != 0) report_.cells[missing[job]].failed = code;
      read_result(missing[job]);
      observer.on_progress({"cells", ++done, static_cast<std::int64_t>(jobs.size()), 0, {}});
    };
    pipeline::run_children(jobs, options_.jobs, observer, before, after);
  }

  // Agreement on its own generator's images does not compare rows; one set for all does.
  void measure(Observer& observer) {
    std::vector<fs::path> folders;
    for (const ReproduceCell& cell : report_.cells)
      if (cell.finished) folders.emplace_back(cell.folder);
    if (folders.empty()) return;
    SelectOptions options;
    options.model = options_.model;
    const SelectReport ranking = select(folders, options, &observer);
    report_.neutral_images = ranking.images;
    for (const SelectRow& row : ranking.rows)
      for (ReproduceCell& cell : report_.cells)
        if (cell.folder == row.folder) {
          cell.neutral_agreement = row.agreement;
          cell.neutral_divergence = row.divergence;
        }
  }

  const ReproduceOptions& options_;
  ReproduceReport report_;
  std::vector<Recipe> recipes_;    // by cell
  std::vector<std::string> keys_;  // by cell: model, version and every setting
};

}  // namespace

ReproduceReport list_cells(const ReproduceOptions& options) {
  return pipeline::at_boundary([&] { return Table(options).list(); });
}

ReproduceReport reproduce(const ReproduceOptions& options, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary([&] { return Table(options).run(observer ? *observer : silent); });
}

}  // namespace zsq
