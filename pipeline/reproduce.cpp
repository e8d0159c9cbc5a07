// SPDX-License-Identifier: Apache-2.0
#include "pipeline/reproduce.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "formats/atomic_file.h"
#include "formats/file_lock.h"
#include "pipeline/generate.h"
#include "pipeline/select.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/children.h"
#include "pipeline/session/output_folder.h"
#include "pipeline/tables/cells.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using pipeline::PlannedCell;

class TableRun {
 public:
  explicit TableRun(const ReproduceOptions& options)
      : options_(options), table_(chosen(options)), inputs_(table_, options) {
    cells_ = pipeline::plan_cells(table_, options, inputs_);
    const auto count = static_cast<std::int64_t>(cells_.size());
    if (options.cell && (*options.cell < 0 || *options.cell >= count))
      throw Error(ErrorCode::usage, "there is no cell " + std::to_string(*options.cell) +
                                        "; they are numbered from 0 to " +
                                        std::to_string(count - 1));
  }

  ReproduceReport report() const {
    ReproduceReport report;
    report.table = table_.name;
    report.about = table_.about;
    report.source = table_.source;
    report.version = table_.version;
    report.tolerance = table_.tolerance;
    report.neutral_images = neutral_images_;
    if (options_.models.size() == 1) report.model = options_.models.front();
    for (const PlannedCell& planned : cells_) report.cells.push_back(planned.cell);
    return report;
  }

  ReproduceReport run(Observer& observer) {
    const std::vector<std::size_t> missing = to_run();
    pipeline::OutputFolder(options_.output).prepare();
    std::set<std::string> checked;
    for (const std::size_t i : missing)
      if (checked.insert(cells_[i].network + cells_[i].recipe.data.preset).second)
        inputs_.check(cells_[i].network, cells_[i].recipe, observer);
    make_banks(missing, observer);
    run_cells(missing, observer);
    measure(observer);
    ReproduceReport whole = report();
    write(whole);
    for (const ReproduceCell& cell : whole.cells)
      if (cell.failed)
        throw Error(ErrorCode::internal,
                    "cell " + std::to_string(cell.number) + " (" + cell.row + ", seed " +
                        std::to_string(cell.seed) + ") ended with exit code " +
                        std::to_string(*cell.failed) + "; see " + log_of(cell).string());
    return whole;
  }

 private:
  static Table chosen(const ReproduceOptions& options) {
    Table table = load_table(options.table);
    table.rows = pipeline::chosen_rows(table, options);
    return table;
  }

  static fs::path log_of(const ReproduceCell& cell) { return fs::path(cell.folder) / "log.txt"; }

  bool wanted(const ReproduceCell& cell) const {
    return !options_.cell || *options_.cell == cell.number;
  }

  // Error where there is neither a result nor anything that could be run.
  std::vector<std::size_t> to_run() const {
    std::vector<std::size_t> missing;
    bool any_result = false;
    std::string lacking;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const ReproduceCell& cell = cells_[i].cell;
      if (!wanted(cell)) continue;
      any_result = any_result || cell.finished;
      if (cell.lacking.empty() && !cell.finished) missing.push_back(i);
      if (lacking.empty())
        for (const std::string& need : cell.lacking)
          lacking += (lacking.empty() ? "" : "; and of ") + need;
    }
    if (missing.empty() && !any_result)
      throw Error(ErrorCode::bad_input, "nothing can be run, for lack of " + lacking +
                                            " (`zsq reproduce " + options_.table +
                                            " --list` tells what each row needs)");
    return missing;
  }

  void write(const ReproduceReport& whole) const {
    const auto file = [&](const char* name, const std::string& text) {
      formats::write_atomically(options_.output / name, std::string_view(text));
    };
    file("table.json", to_json(whole) + "\n");
    file("table.md", to_markdown(whole));
    file("table.csv", to_csv(whole));
    file("table.tex", to_latex(whole));
  }

  void make_banks(const std::vector<std::size_t>& missing, Observer& observer) const {
    for (const std::size_t number : missing) {
      const PlannedCell& planned = cells_[number];
      if (planned.bank.empty() || fs::exists(planned.bank)) continue;
      // Cells may run on several machines: one makes the bank, the others wait for it.
      formats::FileLock lock(planned.bank.string() + ".lock");
      while (!lock.try_lock()) {
        if (observer.stop_requested())
          throw Error(ErrorCode::stopped, "stopped while another process makes the image bank");
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
      if (fs::exists(planned.bank)) continue;
      observer.on_message(LogLevel::info, "making the image bank " + planned.bank.string());
      GenerateOptions options;
      options.recipe = planned.recipe;
      options.recipe.process.seed = 0;
      options.images = planned.bank_images;
      options.form = "safetensors";
      const fs::path folder = planned.bank.string() + ".partial";
      generate(inputs_.model_of(planned.network), options, folder, &observer);
      fs::rename(folder / "bank.safetensors", planned.bank);
      fs::remove_all(folder);
    }
  }

  void run_cells(const std::vector<std::size_t>& missing, Observer& observer) {
    std::vector<pipeline::ChildJob> jobs;
    for (const std::size_t number : missing) {
      const PlannedCell& planned = cells_[number];
      jobs.push_back({planned.cell.command, log_of(planned.cell)});
      if (is_of(planned)) jobs.back().words.emplace_back("--resume");
    }
    const auto before = [&](std::size_t job) {
      const PlannedCell& planned = cells_[missing[job]];
      const ReproduceCell& cell = planned.cell;
      const fs::path folder = cell.folder;
      fs::create_directories(folder);
      if (!is_of(planned)) fs::remove_all(folder / "checkpoint");  // of other settings
      fs::remove(folder / "report.json");
      mark(planned);
      observer.on_message(LogLevel::info, "cell " + std::to_string(cell.number) + ": " + cell.row +
                                              ", seed " + std::to_string(cell.seed));
    };
    std::int64_t done = 0;
    const auto after = [&](std::size_t job, int code) {
      PlannedCell& planned = cells_[missing[job]];
      if (code != 0) planned.cell.failed = code;
      read_result(planned);
      observer.on_progress({"cells", ++done, static_cast<std::int64_t>(jobs.size()), 0, {}});
    };
    pipeline::run_children(jobs, options_.jobs, observer, before, after);
  }

  // Agreement on its own generator's images does not compare rows; one set for all does. A row with
  // a published value is compared with that.
  void measure(Observer& observer) {
    std::vector<fs::path> folders;
    for (const PlannedCell& planned : cells_)
      if (planned.cell.finished && planned.network.empty())
        folders.emplace_back(planned.cell.folder);
    if (folders.empty()) return;
    SelectOptions options;
    options.model = inputs_.model_of("");
    const SelectReport ranking = select(folders, options, &observer);
    neutral_images_ = ranking.images;
    for (const SelectRow& row : ranking.rows)
      for (PlannedCell& planned : cells_)
        if (planned.cell.folder == row.folder) {
          planned.cell.neutral_agreement = row.agreement;
          planned.cell.neutral_divergence = row.divergence;
        }
  }

  const ReproduceOptions& options_;
  Table table_;
  pipeline::TableInputs inputs_;
  std::vector<PlannedCell> cells_;
  std::int64_t neutral_images_ = 0;
};

}  // namespace

ReproduceReport list_cells(const ReproduceOptions& options) {
  return pipeline::at_boundary([&] { return TableRun(options).report(); });
}

ReproduceReport reproduce(const ReproduceOptions& options, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary([&] {
    if (options.output.empty()) throw Error(ErrorCode::usage, "--output_path/-o FOLDER is missing");
    return TableRun(options).run(observer ? *observer : silent);
  });
}

std::vector<TableSummary> list_tables() {
  std::vector<TableSummary> tables;
  for (const std::string& name : table_names()) {
    const Table table = load_table(name);
    tables.push_back(
        {name, table.about, table.source, static_cast<std::int64_t>(table.rows.size())});
  }
  return tables;
}

}  // namespace zsq
