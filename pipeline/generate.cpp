// SPDX-License-Identifier: Apache-2.0
#include "pipeline/generate.h"

#include "formats/hugging_face.h"
#include "parallel/ranks.h"
#include "pipeline/images/image_forms.h"
#include "pipeline/images/image_job.h"
#include "pipeline/images/missing_batch_norm.h"
#include "pipeline/report/json.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/output_folder.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "pipeline/session/staging.h"
#include "pipeline/version.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> metadata_of(const GenerateReport& report, const Recipe& recipe) {
  std::map<std::string, std::string> metadata{
      {"tool", "zsq " + report.tool_version},
      {"recipe", report.recipe},
      {"seed", std::to_string(report.seed)},
      {"preset", report.preset},
      {pipeline::kPreprocessingRecord, report.preprocessing},
      {"source_sha256", report.source_sha256}};
  for (const SettingHelp& setting : describe_settings(recipe))
    if (setting.key.starts_with("generate.images.") ||
        (recipe.images.source == ImageSource::generator && setting.key.starts_with("generate.")))
      metadata[setting.key] = setting.value;
  return metadata;
}

GenerateReport generate_inside(const fs::path& model_path, const GenerateOptions& options,
                               const fs::path& output, Observer& observer) {
  Recipe recipe = options.recipe;
  validate(recipe);
  pipeline::require_image_form(options.form, output);
  pipeline::start_process(recipe.process, observer);
  pipeline::take_size_from_preprocessing(model_path, recipe.data, recipe.model, observer);
  models::Model teacher = pipeline::load_float(model_path, recipe.model, recipe.process.device);
  std::optional<eval::Preprocessing> preprocessing;
  const auto pixels = pipeline::resolve_preprocessing(teacher, recipe, observer);
  if (pixels.preprocessing || options.form == "png")
    preprocessing = pipeline::preprocessing_of(teacher, recipe.data);
  const auto channels_taken = teacher.graph.input_shape[0];
  if (options.form == "png" && channels_taken != 1 && channels_taken != 3)
    throw Error(ErrorCode::usage, "a png has 1 or 3 channels, and the network takes images of " +
                                      std::to_string(channels_taken) + ": choose another --form");
  pipeline::require_statistics(teacher, recipe, observer);
  const bool first = parallel::is_first(parallel::current());
  if (first) pipeline::OutputFolder(output).prepare();

  GenerateReport report;
  report.model = model_path.string();
  report.form = options.form;
  report.preset = recipe.data.preset;
  report.preprocessing = pipeline::preprocessing_record(recipe.data);
  report.pixels = pixels.words;
  report.pixel_range_known = pixels.range;
  report.recipe = recipe.name;
  report.tool_version = version();
  report.seed = recipe.process.seed;
  report.source_sha256 = formats::sha256_of_model(model_path);

  const train::ImageJob job = pipeline::image_job(teacher, recipe, options.images);
  if (!first) {  // rank 0 writes
    pipeline::make_images(job, observer, [](const train::MadeImages&) {});
    return report;
  }
  const auto [channels, height, width] = teacher.graph.input_shape;
  pipeline::Staging staging(output);
  const auto writer =
      pipeline::open_image_writer(options.form, staging.folder(),
                                  {.shape = {options.images, channels, height, width},
                                   .classes = teacher.classes,
                                   .preprocessing = preprocessing,
                                   .metadata = metadata_of(report, recipe)});
  const train::ImageReport made = pipeline::make_images(
      job, observer, [&](const train::MadeImages& images) { writer->add(images); });
  writer->finish();
  report.files = staging.publish();
  report.images = made.images;
  report.steps = made.steps;
  report.cross_entropy = made.cross_entropy;
  report.batch_norm_statistics = made.batch_norm_statistics;
  report.label_agreement = made.label_agreement;
  report.seconds = made.seconds;
  return report;
}

}  // namespace

std::vector<std::string> image_forms() { return pipeline::image_form_names(); }

GenerateReport generate(const fs::path& model, const GenerateOptions& options,
                        const fs::path& output, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return generate_inside(model, options, output, observer ? *observer : silent); });
}

std::string to_json(const GenerateReport& report) {
  pipeline::Json files = pipeline::Json::array();
  for (const fs::path& file : report.files) files.push_back(file.string());
  return pipeline::dump({{"model", report.model},
                         {"form", report.form},
                         {"preset", report.preset},
                         {"preprocessing", pipeline::json_or_null(report.preprocessing)},
                         {"pixels", report.pixels},
                         {"pixel_range_known", report.pixel_range_known},
                         {"recipe", report.recipe},
                         {"tool_version", report.tool_version},
                         {"source_sha256", report.source_sha256},
                         {"seed", report.seed},
                         {"images", report.images},
                         {"steps", report.steps},
                         {"cross_entropy", report.cross_entropy},
                         {"batch_norm_statistics", report.batch_norm_statistics},
                         {"label_agreement", report.label_agreement},
                         {"seconds", report.seconds},
                         {"files", files}});
}

}  // namespace zsq
