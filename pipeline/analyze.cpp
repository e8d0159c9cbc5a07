// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analyze.h"

#include <algorithm>

#include "core/nearest_name.h"
#include "core/stopwatch.h"
#include "formats/atomic_file.h"
#include "formats/hugging_face.h"
#include "models/load.h"
#include "pipeline/analyses/analyses.h"
#include "pipeline/report/json.h"
#include "pipeline/scheme.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/output_folder.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "pipeline/version.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

struct Analysis {
  const char* name;
  const char* about;
  pipeline::AnalysisOutput (*run)(const pipeline::AnalysisInput&);
};

constexpr Analysis kAnalyses[] = {
    {"gradient_cosine", "angle between the gradients of cross-entropy and KL divergence (AIT)",
     pipeline::analyse_gradient_cosine},
    {"crossings", "codes that a step changes, by layer and part of the training (AIT)",
     pipeline::analyse_crossings},
    {"threshold_distance", "steps until a code changes, a histogram by layer (AIT)",
     pipeline::analyse_threshold_distance},
    {"hessian_trace", "how sharp the minima of three losses are (AIT)",
     pipeline::analyse_hessian_trace},
    {"loss_surface", "slices through three losses around the trained weights (AIT)",
     pipeline::analyse_loss_surface},
    {"feature_map", "where synthetic images lie among the classes, in two dimensions (Qimera)",
     pipeline::analyse_feature_map},
};

const Analysis& find(const std::string& name) {
  std::vector<std::string> known;
  for (const Analysis& analysis : kAnalyses) {
    if (analysis.name == name) return analysis;
    known.emplace_back(analysis.name);
  }
  throw Error(ErrorCode::usage, unknown_name_message("analysis", name, known));
}

AnalyzeReport analyze_inside(const std::string& name, const fs::path& path, AnalyzeOptions options,
                             const fs::path& output, Observer& observer) {
  const Stopwatch begin;
  const Analysis& analysis = find(name);
  validate(options.recipe);
  if (options.recipe.finetune.iterations < 2)
    throw Error(ErrorCode::usage,
                "an analysis looks at a training: finetune.iterations is 2 or more");
  pipeline::start_process(options.recipe.process, observer);
  pipeline::take_size_from_preprocessing(path, options.recipe.data, options.recipe.model, observer);
  const models::Model teacher =
      pipeline::load_float(path, options.recipe.model, options.recipe.process.device);
  models::require_batch_norm(teacher);
  pipeline::resolve_preprocessing(teacher, options.recipe, observer);
  std::unique_ptr<eval::ImageSource> real;
  if (!options.recipe.data.eval_data.empty()) {
    real = eval::open_data(options.recipe.data, observer);
    const auto first = real->load(0, 1);
    pipeline::require_input_shape(teacher, first.images, options.recipe.data.eval_data);
    pipeline::require_classes(first.labels, options.recipe.data.eval_data);
  }
  const pipeline::OutputFolder folder(output);
  folder.prepare();
  const pipeline::AnalysisOutput result = analysis.run({teacher, options, real.get(), observer});
  const QuantOptions& quantize = options.recipe.quantize;
  AnalyzeReport report{name,
                       path.string(),
                       formats::sha256_of_model(path),
                       options.recipe.name,
                       Scheme{quantize.weights.num_bits, quantize.activations.num_bits}.name(),
                       version()};
  report.seed = options.recipe.process.seed;
  report.iterations = options.recipe.finetune.iterations;
  report.figures = result.figures;
  for (const auto& [ending, text] :
       {std::pair{".csv", to_csv(result.table)}, {".svg", result.svg}}) {
    report.files.push_back(folder.file(name + ending));
    formats::write_atomically(report.files.back(), std::string_view(text));
  }
  report.seconds = begin.seconds();
  return report;
}

}  // namespace

std::vector<AnalysisName> analyses() {
  std::vector<AnalysisName> names;
  for (const Analysis& analysis : kAnalyses) names.push_back({analysis.name, analysis.about});
  return names;
}

AnalyzeReport analyze(const std::string& name, const fs::path& model, const AnalyzeOptions& options,
                      const fs::path& output, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return analyze_inside(name, model, options, output, observer ? *observer : silent); });
}

std::string to_json(const AnalyzeReport& report) {
  auto figures = pipeline::Json::object(), files = pipeline::Json::array();
  for (const auto& [what, value] : report.figures) figures[what] = value;
  for (const fs::path& file : report.files) files.push_back(file.string());
  return pipeline::dump({{"analysis", report.name},
                         {"model", report.model},
                         {"source_sha256", report.source_sha256},
                         {"recipe", report.recipe},
                         {"scheme", report.scheme},
                         {"tool_version", report.tool_version},
                         {"seed", report.seed},
                         {"iterations", report.iterations},
                         {"figures", figures},
                         {"files", files},
                         {"seconds", report.seconds}});
}

}  // namespace zsq
