// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "pipeline/report/json.h"
#include "pipeline/reproduce.h"

namespace zsq {
namespace {

using pipeline::Json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// As a shell reads it; without the folder of the program.
std::string command_line(const ReproduceCell& cell) {
  std::string line;
  for (std::size_t i = 0; i < cell.command.size(); ++i) {
    std::string word = cell.command[i];
    if (i == 0) word = std::filesystem::path(word).filename().string();
    const bool plain = word.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=./+,:"
                           "%") == std::string::npos;
    line += (i ? " " : "") + (plain && !word.empty() ? word : "'" + word + "'");
  }
  return line;
}

struct Summary {
  std::string name, about, command;
  std::vector<const ReproduceCell*> finished;
  std::int64_t cells = 0;

  // Mean over the finished cells that have it.
  std::optional<double> mean(std::optional<double> ReproduceCell::*field) const {
    double sum = 0;
    int count = 0;
    for (const auto* cell : finished)
      if (cell->*field) sum += *(cell->*field), ++count;
    return count ? std::optional(sum / count) : std::nullopt;
  }
  std::optional<double> worst_top1() const {
    std::optional<double> worst;
    for (const auto* cell : finished)
      if (cell->top1) worst = std::min(worst.value_or(*cell->top1), *cell->top1);
    return worst;
  }
};

std::vector<Summary> summaries(const ReproduceReport& report) {
  std::vector<Summary> rows;
  for (const ReproduceCell& cell : report.cells) {
    if (rows.empty() || rows.back().name != cell.row)
      rows.push_back({cell.row, cell.about, command_line(cell), {}, 0});
    ++rows.back().cells;
    if (cell.finished) rows.back().finished.push_back(&cell);
  }
  return rows;
}

std::string number(const std::optional<double>& value, const char* pattern, double factor = 1) {
  if (!value) return "";
  char text[32];
  std::snprintf(text, sizeof text, pattern, factor * *value);
  return text;
}

Json cell_json(const ReproduceCell& cell) {
  return {{"number", cell.number},
          {"row", cell.row},
          {"about", cell.about},
          {"seed", cell.seed},
          {"folder", cell.folder},
          {"command", command_line(cell)},
          {"finished", cell.finished},
          {"exit_code", cell.failed ? Json(*cell.failed) : Json(nullptr)},
          {"top1", or_null(cell.top1)},
          {"teacher_top1", or_null(cell.teacher_top1)},
          {"agreement", or_null(cell.agreement)},
          {"divergence", or_null(cell.divergence)},
          {"neutral_agreement", or_null(cell.neutral_agreement)},
          {"neutral_divergence", or_null(cell.neutral_divergence)},
          {"iterations", cell.iterations},
          {"seconds", cell.seconds}};
}

}  // namespace

std::string to_json(const ReproduceReport& report) {
  auto rows = Json::array(), cells = Json::array();
  for (const Summary& row : summaries(report))
    rows.push_back(
        {{"name", row.name},
         {"about", row.about},
         {"command", row.command},
         {"seeds_finished", row.finished.size()},
         {"seeds", row.cells},
         {"mean_top1", or_null(row.mean(&ReproduceCell::top1))},
         {"worst_top1", or_null(row.worst_top1())},
         {"mean_agreement", or_null(row.mean(&ReproduceCell::agreement))},
         {"mean_neutral_agreement", or_null(row.mean(&ReproduceCell::neutral_agreement))},
         {"mean_neutral_divergence", or_null(row.mean(&ReproduceCell::neutral_divergence))}});
  for (const ReproduceCell& cell : report.cells) cells.push_back(cell_json(cell));
  return pipeline::dump({{"table", report.table},
                         {"model", report.model},
                         {"source_sha256", report.source_sha256},
                         {"neutral_images", report.neutral_images},
                         {"rows", rows},
                         {"cells", cells}},
                        1);
}

std::string to_markdown(const ReproduceReport& report) {
  std::string text =
      "| row | what it adds | seeds | top-1 mean, % | worst, % | KL | agreement, % | iterations | "
      "seconds |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  std::string commands;
  std::optional<double> teacher;
  for (const Summary& row : summaries(report)) {
    double iterations = 0, seconds = 0;
    std::string seeds;
    for (const auto* cell : row.finished) {
      seeds += (seeds.empty() ? "" : ", ") + std::to_string(cell->seed);
      iterations += static_cast<double>(cell->iterations);
      seconds += cell->seconds;
      teacher = cell->teacher_top1 ? cell->teacher_top1 : teacher;
    }
    const auto n = static_cast<double>(row.finished.size());
    const auto per_cell = [&](double sum) { return n > 0 ? std::optional(sum / n) : std::nullopt; };
    text +=
        "| " + row.name + " | " + row.about + " | " + seeds + " | " +
        number(row.mean(&ReproduceCell::top1), "%.2f") + " | " + number(row.worst_top1(), "%.2f") +
        " | " + number(row.mean(&ReproduceCell::neutral_divergence), "%.4f") + " | " +
        number(row.mean(&ReproduceCell::neutral_agreement), "%.1f", 100) + " | " +
        number(per_cell(iterations), "%.0f") + " | " + number(per_cell(seconds), "%.0f") + " |\n";
    commands += row.command + "\n";
  }
  text += "\nTable `" + report.table + "` of " +
          std::filesystem::path(report.model).filename().string() +
          (teacher ? ", " + number(teacher, "%.2f") + " % in float" : "") +
          ". KL and agreement: on " + std::to_string(report.neutral_images) +
          " held-out synthetic images. The command of each row, first "
          "seed:\n\n```sh\n" +
          commands + "```\n";
  return text;
}

}  // namespace zsq
