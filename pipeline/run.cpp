// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "eval/evaluate.h"
#include "formats/npy.h"
#include "models/execute.h"
#include "models/file_layout.h"
#include "models/load.h"
#include "models/rounding.h"
#include "models/tail.h"
#include "pipeline/report/json.h"
#include "pipeline/report/saturation.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"

namespace zsq {
namespace {

std::vector<std::string> read_names(const std::filesystem::path& path) {
  std::vector<std::string> names;
  if (path.empty()) return names;
  std::ifstream stream(path);
  if (!stream)
    throw Error(ErrorCode::bad_input, "cannot read class names from '" + path.string() + "'");
  for (std::string line; std::getline(stream, line);) names.push_back(line);
  return names;
}

void tell_warnings(const models::Model& model, Observer& observer) {
  for (const auto& warning : model.warnings) observer.on_message(LogLevel::warning, warning);
}

void require_whole(const models::Model& model) {
  if (const auto& tail = model.graph.signature.tail)
    throw Error(ErrorCode::unsupported_model,
                "the network ends in " + models::operators_of(*tail) +
                    ", which only runtimes compute; zsq compare says how close two networks are in "
                    "what these read");
}

void require_one_row(const models::Model& model) {
  require_whole(model);
  if (!model.graph.signature.kind.outputs().empty())
    throw Error(ErrorCode::unsupported_model,
                "the network gives several outputs, or a map, and no classes of an image; zsq "
                "compare compares two networks on images, and --npz with --compare a network with "
                "arrays");
}

// [classes] of one image.
at::Tensor scores_of(const models::Graph& graph, const at::Tensor& output) {
  switch (graph.signature.kind) {
    case models::OutputKind::logits:
      return at::softmax(output[0], 0);
    case models::OutputKind::scores:
      return at::sigmoid(output[0]);
    case models::OutputKind::values:
    case models::OutputKind::map:
    case models::OutputKind::several:
      break;
  }
  return output[0];
}

at::Tensor required_array(const formats::NamedArrays& arrays, const char* name,
                          const std::filesystem::path& path) {
  if (const formats::Array* array = formats::find(arrays, name))
    return models::to_tensor(*array).to(at::kFloat);
  std::string found;
  for (const auto& [other, array] : arrays) found += (found.empty() ? "" : ", ") + other;
  throw Error(ErrorCode::bad_input, "'" + path.string() + "' holds no array '" + name +
                                        "'; found: " + (found.empty() ? "nothing" : found));
}

std::vector<ImageClasses> classify_inside(const std::filesystem::path& model_path,
                                          const std::vector<std::filesystem::path>& images,
                                          const RunOptions& options, Observer& observer) {
  pipeline::start_process(options.process, observer);
  const auto names = read_names(options.classes);
  ModelSettings settings = options.model;
  pipeline::take_size_from_preprocessing(model_path, options.preprocessing, settings, observer);
  models::Model model = pipeline::load_any(model_path, settings, options.process.device);
  pipeline::use_arithmetic(options.arithmetic, model_path, model, observer);
  tell_warnings(model, observer);
  PreprocessingOptions data = options.preprocessing;
  pipeline::resolve_preprocessing(model, data, observer);
  const auto preprocessing = pipeline::preprocessing_of(model, data);
  require_one_row(model);
  std::vector<ImageClasses> results;
  for (const auto& path : images) {
    const at::Tensor image = eval::load_image(path, preprocessing);
    pipeline::require_input_shape(model, image, "the preprocessing " + preprocessing.name);
    const at::Tensor logits = pipeline::infer(model.graph, model.parameters, image);
    const auto [scores, indices] = at::topk(scores_of(model.graph, logits),
                                            std::min<std::int64_t>(options.top, logits.size(1)));
    ImageClasses result{path, {}};
    for (std::int64_t i = 0; i < scores.size(0); ++i) {
      const auto index = indices[i].item<std::int64_t>();
      const bool named = index < static_cast<std::int64_t>(names.size());
      result.classes.push_back(
          {index, named ? names[static_cast<std::size_t>(index)] : "", scores[i].item<double>()});
    }
    results.push_back(std::move(result));
  }
  return results;
}

// `in_double`: what rounding explains, where that may count.
CompareReport compare_output(
    at::Tensor output, const at::Tensor& expected, const std::string& what,
    const std::function<std::optional<models::Rounding>(const at::Tensor&)>& in_double,
    double tolerance) {
  // One number per image may be stored as a vector.
  if (expected.dim() == 1 && output.numel() == expected.numel()) output = output.flatten();
  if (output.sizes() != expected.sizes())
    throw Error(ErrorCode::bad_input, what + " has shape " + c10::str(expected.sizes()) +
                                          ", the model gives " + c10::str(output.sizes()));
  CompareReport report{output.sizes().vec(), models::relative_distance(output, expected),
                       tolerance};
  report.equal = report.relative_error <= tolerance;
  if (report.equal) return report;
  if (const auto rounding = in_double(output)) {
    report.rounding = rounding->here;
    report.equal = report.by_rounding = rounding->explains(tolerance);
  }
  return report;
}

// The worst of all outputs is that of the report.
void add_output(const CompareReport& one, CompareReport& all) {
  if (all.shape.empty() || one.relative_error >= all.relative_error) {
    all.shape = one.shape;
    all.relative_error = one.relative_error;
    all.rounding = one.rounding;
  }
  all.by_rounding = all.by_rounding || one.by_rounding;
  all.equal = all.equal && one.equal;
}

CompareReport compare_inside(const std::filesystem::path& model_path,
                             const std::filesystem::path& npz, const RunOptions& options,
                             double tolerance, Observer& observer) {
  Observer silent;
  pipeline::start_process(options.process, silent);
  const auto arrays = formats::read_npz(npz);
  models::Model model = pipeline::load_any(model_path, options.model, options.process.device);
  pipeline::use_arithmetic(options.arithmetic, model_path, model, observer);
  tell_warnings(model, observer);
  require_whole(model);
  const at::Tensor input =
      models::from_file_input(model.graph, required_array(arrays, "input", npz));
  pipeline::require_input_shape(model, input, "'" + npz.string() + "'");
  const auto outputs =
      models::as_file_outputs(model.graph, pipeline::infer(model.graph, model.parameters, input));
  CompareReport report{{}, 0, tolerance};
  report.equal = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = outputs.size() == 1 ? "output" : outputs[i].name;
    const at::Tensor expected = required_array(arrays, name.c_str(), npz);
    add_output(compare_output(
                   outputs[i].value, expected, "'" + npz.string() + "': '" + name + "'",
                   [&](const at::Tensor& output) {
                     return options.allow_rounding && options.arithmetic == Arithmetic::exact
                                ? models::measure_rounding(model, input, output, expected, i)
                                : std::nullopt;
                   },
                   tolerance),
               report);
  }
  return report;
}

}  // namespace

std::vector<ImageClasses> classify(const std::filesystem::path& model,
                                   const std::vector<std::filesystem::path>& images,
                                   const RunOptions& options, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return classify_inside(model, images, options, observer ? *observer : silent); });
}

CompareReport compare_with_arrays(const std::filesystem::path& model,
                                  const std::filesystem::path& npz, const RunOptions& options,
                                  double tolerance, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary([&] {
    return compare_inside(model, npz, options, tolerance, observer ? *observer : silent);
  });
}

std::string to_json(const std::vector<ImageClasses>& results) {
  auto json = pipeline::Json::array();
  for (const ImageClasses& result : results) {
    auto classes = pipeline::Json::array();
    for (const ClassScore& c : result.classes)
      classes.push_back({{"index", c.index}, {"name", c.name}, {"score", c.score}});
    json.push_back({{"image", result.image.string()}, {"classes", classes}});
  }
  return pipeline::dump(json);
}

std::string to_json(const CompareReport& report) {
  return pipeline::dump({{"shape", report.shape},
                         {"relative_error", report.relative_error},
                         {"tolerance", report.tolerance},
                         {"rounding", report.rounding},
                         {"by_rounding", report.by_rounding},
                         {"equal", report.equal}});
}

}  // namespace zsq
