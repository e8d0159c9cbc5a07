// SPDX-License-Identifier: Apache-2.0
// A table with its results as text: one line for each row, its seeds together.
#include <algorithm>
#include <cmath>

#include "pipeline/report/grid.h"
#include "pipeline/report/json.h"
#include "pipeline/reproduce.h"
#include "pipeline/session/format.h"

namespace zsq {
namespace {

using pipeline::Json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

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

std::string number(const std::optional<double>& value, const char* pattern, double factor = 1) {
  return value ? pipeline::format(pattern, factor * *value) : "";
}

// The cells of one row; the first one stands for what they share.
struct Summary {
  const ReproduceCell* first = nullptr;
  std::vector<const ReproduceCell*> finished;
  std::int64_t cells = 0, failed = 0;

  // Mean over the finished cells that have it.
  template <class Field>
  std::optional<double> mean(Field ReproduceCell::*field) const {
    double sum = 0;
    int count = 0;
    for (const auto* cell : finished) {
      const std::optional<double> value = cell->*field;
      if (value) sum += *value, ++count;
    }
    return count ? std::optional(sum / count) : std::nullopt;
  }
  std::optional<double> worst_top1() const {
    std::optional<double> worst;
    for (const auto* cell : finished)
      if (cell->top1) worst = std::min(worst.value_or(*cell->top1), *cell->top1);
    return worst;
  }
  std::optional<double> gap() const {
    const auto ours = mean(&ReproduceCell::top1);
    if (!first->published || !ours) return std::nullopt;
    return std::round(100 * (*ours - *first->published)) / 100 + 0.0;  // to two digits, no -0
  }
  std::string seeds() const {
    std::string text;
    for (const auto* cell : finished)
      text += (text.empty() ? "" : ", ") + std::to_string(cell->seed);
    return text;
  }
};

std::vector<Summary> summaries(const ReproduceReport& report) {
  std::vector<Summary> rows;
  for (const ReproduceCell& cell : report.cells) {
    if (rows.empty() || rows.back().first->row != cell.row) rows.emplace_back().first = &cell;
    ++rows.back().cells;
    rows.back().failed += cell.failed.has_value();
    if (cell.finished) rows.back().finished.push_back(&cell);
  }
  return rows;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

// Another network, fewer images: then the published value is another one's.
void add_other_inputs(const Summary& row, std::vector<std::string>& parts) {
  const auto teacher = row.mean(&ReproduceCell::teacher_top1);
  const ReproduceCell& cell = *row.first;
  const std::int64_t images = row.finished.front()->images;
  const bool other_teacher = teacher && std::abs(*teacher - *cell.published_teacher) > 0.3;
  if (!cell.wrong.empty() || (other_teacher && images >= cell.published_images))
    parts.emplace_back("other weights");
  if (other_teacher)
    parts.push_back(number(teacher, "%.2f") + " % in float instead of " +
                    number(cell.published_teacher, "%.2f") + " %");
  if (images != cell.published_images)
    parts.push_back(std::to_string(images) + " of " + std::to_string(cell.published_images) +
                    " images");
}

// Why ours is what it is beside the published value; empty where there is none.
std::string reason(const Summary& row, double tolerance) {
  const ReproduceCell& cell = *row.first;
  if (row.failed > 0) return "failed";
  if (!cell.published) return "";
  if (row.finished.empty())
    return cell.lacking.empty() ? "not run" : "lacks " + joined(cell.lacking);
  std::vector<std::string> parts;
  if (cell.published_teacher) add_other_inputs(row, parts);
  parts.insert(parts.end(), cell.changed.begin(), cell.changed.end());
  if (static_cast<std::int64_t>(row.finished.size()) < row.cells)
    parts.push_back(std::to_string(row.finished.size()) + " of " + std::to_string(row.cells) +
                    " seeds");
  const auto gap = row.gap();
  if (parts.empty() && gap)
    parts.push_back((std::abs(*gap) <= tolerance ? "within " : "outside of ") +
                    number(tolerance, "%.1f") + " points");
  if (!cell.note.empty()) parts.push_back(cell.note);
  return joined(parts);
}

pipeline::Grid grid_of(const ReproduceReport& report) {
  pipeline::Grid grid;
  grid.columns = {{"row"},
                  {"what it is"},
                  {"seeds"},
                  {"paper, %", true},
                  {"ours, %", true},
                  {"gap", true},
                  {"worst, %", true},
                  {"KL", true},
                  {"agreement, %", true},
                  {"iterations", true},
                  {"seconds", true},
                  {"reason"}};
  for (const Summary& row : summaries(report))
    grid.rows.push_back(
        {row.first->row, row.first->about, row.seeds(), number(row.first->published, "%.2f"),
         number(row.mean(&ReproduceCell::top1), "%.2f"), number(row.gap(), "%+.2f"),
         number(row.finished.size() > 1 ? row.worst_top1() : std::nullopt, "%.2f"),
         number(row.mean(&ReproduceCell::neutral_divergence), "%.4f"),
         number(row.mean(&ReproduceCell::neutral_agreement), "%.1f", 100),
         number(row.mean(&ReproduceCell::iterations), "%.0f"),
         number(row.mean(&ReproduceCell::seconds), "%.0f"), reason(row, report.tolerance)});
  return grid;
}

Json cell_json(const ReproduceCell& cell) {
  return {{"number", cell.number},
          {"row", cell.row},
          {"about", cell.about},
          {"network", or_null(cell.network)},
          {"scheme", cell.scheme},
          {"seed", cell.seed},
          {"folder", cell.folder},
          {"command", command_line(cell)},
          {"lacks", cell.lacking},
          {"wrong", or_null(cell.wrong)},
          {"finished", cell.finished},
          {"exit_code", cell.failed ? Json(*cell.failed) : Json(nullptr)},
          {"published", or_null(cell.published)},
          {"published_teacher_top1", or_null(cell.published_teacher)},
          {"top1", or_null(cell.top1)},
          {"images", cell.images},
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
        {{"name", row.first->row},
         {"about", row.first->about},
         {"command", command_line(*row.first)},
         {"seeds_finished", row.finished.size()},
         {"seeds", row.cells},
         {"published", or_null(row.first->published)},
         {"mean_top1", or_null(row.mean(&ReproduceCell::top1))},
         {"gap", or_null(row.gap())},
         {"reason", or_null(reason(row, report.tolerance))},
         {"worst_top1", or_null(row.worst_top1())},
         {"mean_agreement", or_null(row.mean(&ReproduceCell::agreement))},
         {"mean_neutral_agreement", or_null(row.mean(&ReproduceCell::neutral_agreement))},
         {"mean_neutral_divergence", or_null(row.mean(&ReproduceCell::neutral_divergence))}});
  for (const ReproduceCell& cell : report.cells) cells.push_back(cell_json(cell));
  return pipeline::dump({{"table", report.table},
                         {"version", report.version},
                         {"about", or_null(report.about)},
                         {"source", or_null(report.source)},
                         {"tolerance", report.tolerance},
                         {"model", or_null(report.model)},
                         {"neutral_images", report.neutral_images},
                         {"rows", rows},
                         {"cells", cells}},
                        1);
}

std::string to_markdown(const ReproduceReport& report) {
  std::string text = to_markdown(pipeline::without_empty_columns(grid_of(report)));
  text += "\nTable `" + report.table + "`, version " + std::to_string(report.version);
  if (!report.about.empty()) text += ": " + report.about;
  text += ".";
  if (!report.source.empty()) text += " Published in " + report.source + ".";
  const auto rows = summaries(report);
  const ReproduceCell& first = *rows.front().first;
  if (first.network.empty() && !rows.front().finished.empty() && first.teacher_top1)
    text += " Top-1 in float: " + number(first.teacher_top1, "%.2f") + " %.";
  if (report.neutral_images > 0)
    text += " KL and agreement: on " + std::to_string(report.neutral_images) +
            " held-out synthetic images.";
  text += " The command of each row, first seed:\n\n```sh\n";
  for (const Summary& row : rows) text += command_line(*row.first) + "\n";
  return text + "```\n";
}

std::string to_csv(const ReproduceReport& report) { return to_csv(grid_of(report)); }

std::string to_latex(const ReproduceReport& report) {
  return "% " + report.table + ", version " + std::to_string(report.version) + "; " +
         report.source + "\n" + to_latex(pipeline::without_empty_columns(grid_of(report)));
}

}  // namespace zsq
