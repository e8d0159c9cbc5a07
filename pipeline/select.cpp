// SPDX-License-Identifier: Apache-2.0
#include "pipeline/select.h"

#include <algorithm>

#include "formats/hugging_face.h"
#include "losses/divergence.h"
#include "pipeline/images/distilled.h"
#include "pipeline/report/finished_run.h"
#include "pipeline/report/quality.h"
#include "pipeline/report/result_json.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "train/agreement.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using pipeline::Json;

class Selection {
 public:
  Selection(const std::vector<fs::path>& folders, const SelectOptions& options, Observer& observer)
      : observer_(observer) {
    if (folders.empty())
      throw Error(ErrorCode::usage, "no output folder of `zsq quantize` is given");
    for (const fs::path& folder : folders) add_row(folder);
    Recipe recipe = options.recipe;
    const Recipe run = load_recipe((folders.front() / "resolved.yaml").string());
    if (recipe.model.arch.empty()) recipe.model = run.model;
    if (recipe.data.preset.empty())
      static_cast<PreprocessingOptions&>(recipe.data) = eval::overlay(run.data, recipe.data);
    validate(recipe);
    pipeline::start_process(recipe.process, observer);
    if (!options.model.empty()) report_.model = options.model.string();
    const std::string sha256 = formats::sha256_of_model(report_.model);
    if (sha256 != report_.source_sha256)
      throw Error(ErrorCode::usage, "'" + report_.model + "' is not the model that " +
                                        folders.front().string() +
                                        " was made of (its SHA-256 differs); name it by --model");
    device_ = recipe.process.device;
    const models::Model teacher = pipeline::load_float(report_.model, recipe.model, device_);
    images_ = options.bank.empty()
                  ? pipeline::distilled_images(teacher, sha256, recipe,
                                               {"selection", options.images}, observer)
                  : pipeline::bank_images(options.bank, teacher, options.images);
    report_.images = images_.size(0);
    kind_ = teacher.graph.signature.kind;
    report_.output_kind = losses::name_of(kind_);
    expected_ = logits(teacher);
  }

  SelectReport run() && {
    for (SelectRow& row : report_.rows) {
      const at::Tensor given = logits(pipeline::load_any(row.folder, {}, device_));
      const auto seen = train::compare_outputs(kind_, expected_, given);
      row.divergence = seen.kl;
      row.agreement = seen.agreement;
      row.outputs = pipeline::measure_outputs(kind_, expected_, given);
      observer_.on_progress({"select",
                             ++done_,
                             static_cast<std::int64_t>(report_.rows.size()),
                             0,
                             {{"divergence", row.divergence}, {"agreement", row.agreement}}});
    }
    std::stable_sort(
        report_.rows.begin(), report_.rows.end(),
        [](const SelectRow& a, const SelectRow& b) { return a.divergence < b.divergence; });
    return std::move(report_);
  }

 private:
  void add_row(const fs::path& folder) {
    const Json json = pipeline::read_report(folder);
    if (report_.rows.empty()) {
      report_.model = json["model"];
      report_.source_sha256 = json["source_sha256"];
    } else if (json["source_sha256"] != report_.source_sha256) {
      throw Error(ErrorCode::usage, folder.string() + " and " + report_.rows.front().folder +
                                        " were made of different models; only students of one "
                                        "model can be ranked");
    }
    report_.rows.push_back({folder.string(), json["scheme"], json["recipe"],
                            json.value("seed", std::int64_t{0}),
                            json["size"].value("quantized_bytes", std::int64_t{0})});
  }

  at::Tensor logits(const models::Model& model) const {
    return train::logits_of(model.graph, model.parameters, images_.to(model.parameters.device()))
        .cpu();
  }

  Observer& observer_;
  Device device_ = Device::cpu;
  SelectReport report_;
  at::Tensor images_, expected_;
  models::OutputRow kind_ = models::OutputKind::logits;
  std::int64_t done_ = 0;
};

}  // namespace

SelectReport select(const std::vector<fs::path>& folders, const SelectOptions& options,
                    Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return Selection(folders, options, observer ? *observer : silent).run(); });
}

std::string to_json(const SelectReport& report) {
  auto rows = Json::array();
  for (const SelectRow& row : report.rows) {
    rows.push_back({{"folder", row.folder},
                    {"scheme", row.scheme},
                    {"recipe", row.recipe},
                    {"seed", row.seed},
                    {"quantized_bytes", row.quantized_bytes},
                    {"divergence", row.divergence},
                    {"agreement", row.agreement}});
    if (!row.outputs.empty()) rows.back()["outputs"] = row.outputs;
  }
  return pipeline::dump({{"model", report.model},
                         {"source_sha256", report.source_sha256},
                         {"images", report.images},
                         {"output_kind", report.output_kind},
                         {"rows", rows}});
}

}  // namespace zsq
