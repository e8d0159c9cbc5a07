// SPDX-License-Identifier: Apache-2.0
#include "pipeline/export.h"

#include <algorithm>

#include "exporters/registry.h"
#include "exporters/restore_student.h"
#include "formats/hugging_face.h"
#include "formats/in_file.h"
#include "pipeline/images/missing_batch_norm.h"
#include "pipeline/report/finished_run.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "quant/calibration/inverted_bottleneck.h"
#include "quant/rewrites/equalize.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using namespace pipeline;

fs::path required_file(const fs::path& folder, const char* name, const std::string& why) {
  if (fs::is_regular_file(folder / name)) return folder / name;
  throw Error(ErrorCode::bad_input, "'" + folder.string() + "' holds no " + name + why);
}

// model.safetensors has no structure of the network, only what its layers hold.
fs::path float_network(const fs::path& folder, const ExportRunOptions& options,
                       const Json& report) {
  fs::path path = options.model.empty() ? fs::path(text_in(report, "model")) : options.model;
  const std::string sha256 = text_in(report, "source_sha256");
  const std::string structure =
      "; the structure of the network is taken from it (its weights are not): name it with --model";
  if (!fs::exists(path))
    throw Error(ErrorCode::bad_input, "the float network of '" + folder.string() +
                                          "' is not there any more: '" + path.string() +
                                          "', SHA-256 " + sha256 + structure);
  const std::string found = formats::sha256_of_model(path);
  if (found != sha256)
    throw Error(ErrorCode::bad_input, "'" + path.string() + "' (SHA-256 " + found +
                                          ") is not the float network of '" + folder.string() +
                                          "' (SHA-256 " + sha256 + ")" + structure);
  return path;
}

// Copies of channels that the run appended (quant/rewrites/split_channels.h), to be filled.
void append_channels(models::Model& teacher, const formats::SafetensorsFile& file) {
  for (const auto& block : quant::find_inverted_bottlenecks(teacher)) {
    const models::Node& layer = teacher.graph[block.depthwise];
    const formats::Array* scale = formats::find(file.tensors, layer.name + ".weight.scale");
    if (!scale || scale->shape.size() != 1) continue;
    const auto more = scale->shape[0] - models::get_if<models::Conv2d>(layer)->groups;
    if (more > 0) quant::append_channels(teacher, block, more);
  }
}

// Quantizers where the run had them, with grids that the file replaces: the fastest rules will do.
quant::Student structure_of(const fs::path& model, const formats::SafetensorsFile& file,
                            Recipe recipe, Observer& observer) {
  models::Model teacher = load_float(model, recipe.model, Device::cpu);
  append_channels(teacher, file);
  resolve_preprocessing(teacher, recipe, observer);
  require_statistics(teacher, recipe, observer);
  QuantOptions& options = recipe.quantize;
  options.weights.range = WeightRange::min_max;
  options.weights.range_every_step = false;
  options.weights.rounding = WeightRounding::nearest;
  options.bias_correction = BiasCorrection::none;
  // The file's codes stay as they are, also those of runs from before there was a bound.
  if (options.weights.saturation == Saturation::avoid)
    options.weights.saturation = Saturation::allow;
  return quant::insert_quantizers(quant::equalize(std::move(teacher), options), options);
}

exporters::Metadata metadata_of(const formats::SafetensorsFile& file) {
  exporters::Metadata metadata = file.metadata;
  for (const char* key : {"format", "how_to_read", "layers", "quantizers"}) metadata.erase(key);
  return metadata;
}

[[noreturn]] void refuse(const exporters::RefusedByTarget& refused, const fs::path& folder,
                         const fs::path& model, Target target) {
  const std::string name(enum_name(target));
  throw Error(ErrorCode::unsupported_model,
              std::string(refused.what()) + "\nQuantize for this target instead: zsq quantize " +
                  model.string() + " --recipe " + (folder / "resolved.yaml").string() +
                  " --set quantize.target=" + name + " -o " + folder.string() + "_" + name);
}

ExportedRun describe(const exporters::ExportReport& report) {
  ExportedRun exported;
  exported.bytes = report.bytes;
  for (const exporters::ExecutesAs& layer : report.layers) {
    exported.layers.push_back(
        {layer.layer, layer.op, layer.executes_as, layer.speed, layer.reason});
    exported.integer_share += layer.executes_as == "float" ? 0 : 1;
  }
  exported.integer_share /= std::max<double>(1, static_cast<double>(report.layers.size()));
  return exported;
}

// model.openvino.onnx, but model.tflite.
std::string file_name(const std::string& target, std::string_view extension) {
  const std::string kind = "." + target;
  return "model" + (kind == extension ? "" : kind) + std::string(extension);
}

ExportedRun export_inside(const fs::path& folder, const ExportRunOptions& options,
                          Observer& observer) {
  const Json report = read_report(folder);
  const std::string needed = "; `zsq export` needs what every finished `zsq quantize` writes";
  const Recipe recipe = load_recipe(required_file(folder, "resolved.yaml", needed).string());
  const fs::path codes = required_file(folder, "model.safetensors",
                                       needed +
                                           " unless "
                                           "export.safetensors=false");
  const fs::path model = float_network(folder, options, report);
  const formats::SafetensorsFile file = formats::read_safetensors(codes);
  quant::Student student = structure_of(model, file, recipe, observer);
  formats::in_file(codes, [&] { exporters::restore_student(file, student); });
  // For its own target the file is that of the run, byte for byte.
  if (options.target != recipe.quantize.target)
    student.options.weights.saturation = recipe.quantize.weights.saturation;
  student.options.target = options.target;

  const std::string target(enum_name(options.target));
  const exporters::TargetFile& form = exporters::target_file(options.target);
  const fs::path output =
      options.output.empty() ? folder / file_name(target, form.extension) : options.output;
  try {
    ExportedRun exported =
        describe(form.write(student, output, metadata_of(file), {recipe.exporting.packed}));
    exported.run = folder.string();
    exported.target = target;
    exported.file = output.string();
    return exported;
  } catch (const exporters::RefusedByTarget& refused) {
    refuse(refused, folder, model, options.target);
  }
}

}  // namespace

ExportedRun export_run(const fs::path& folder, const ExportRunOptions& options,
                       Observer* observer) {
  Observer silent;
  return at_boundary([&] { return export_inside(folder, options, observer ? *observer : silent); });
}

std::string to_json(const ExportedRun& exported) {
  auto layers = Json::array();
  for (const ExportedLayer& layer : exported.layers)
    layers.push_back({{"name", layer.name},
                      {"op", layer.op},
                      {"executes_as", layer.executes_as},
                      {"speed", layer.speed},
                      {"reason", layer.reason}});
  return dump({{"run", exported.run},
               {"target", exported.target},
               {"file", exported.file},
               {"bytes", exported.bytes},
               {"integer_share", exported.integer_share},
               {"layers", layers}});
}

}  // namespace zsq
