// SPDX-License-Identifier: Apache-2.0
#include "pipeline/check.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "core/choice.h"
#include "core/seed.h"
#include "eval/evaluate.h"
#include "formats/npy.h"
#include "losses/divergence.h"
#include "models/load.h"
#include "models/tail.h"
#include "pipeline/export.h"
#include "pipeline/images/held_out.h"
#include "pipeline/images/image_job.h"
#include "pipeline/images/missing_batch_norm.h"
#include "pipeline/report/finished_run.h"
#include "pipeline/runtimes/before_tail.h"
#include "pipeline/runtimes/check_words.h"
#include "pipeline/runtimes/exported_files.h"
#include "pipeline/runtimes/float_files.h"
#include "pipeline/runtimes/processor.h"
#include "pipeline/runtimes/reference.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using namespace pipeline;

constexpr double kSeconds = 1.5;  // that timing takes for each of two files

// What is said of the file that this program makes for itself tells nobody anything, but warnings.
class WarningsOnly : public Observer {
 public:
  explicit WarningsOnly(Observer& observer) : observer_(observer) {}
  void on_message(LogLevel level, const std::string& message) override {
    if (level == LogLevel::warning) observer_.on_message(level, message);
  }

 private:
  Observer& observer_;
};

class Check {
 public:
  Check(const fs::path& folder, const CheckOptions& options, Observer& observer)
      : folder_(folder),
        options_(options),
        observer_(observer),
        run_(read_report(folder)),
        recipe_(load_recipe((folder / "resolved.yaml").string())),
        processor_(this_processor()) {
    recipe_.process.device = Device::cpu;
    report_.run = folder.string();
    report_.processor = processor_.in_words();
    report_.threads = options.threads;
  }

  CheckReport run() && {
    start_process(recipe_.process, observer_);
    const std::vector<ExportedFile> files = exported_files(folder_, text_in(run_, "target"));
    const FoundRuntimes found =
        find_runtimes(files, options_.python, scratch_, options_.timeout, observer_);
    report_.python = found.python.program().string();
    load_networks();
    reference_ = make_reference(std::move(quantized_), images(), observer_);
    describe_reference();
    formats::write_npy(scratch_ / "images.npy", models::to_array(reference_.images));
    for (const FileInRuntime& pair : found.pairs) report_.rows.push_back(check(pair, found.python));
    if (std::ranges::none_of(report_.rows, [](const RuntimeCheck& row) { return row.decides; }))
      report_.rows.front().decides = true;
    conclude(report_, processor_);
    return std::move(report_);
  }

 private:
  // The run as model.safetensors has it, so that a file that differs from it shows; without the
  // float network, whose structure that needs, as model.onnx has it.
  void load_networks() {
    ModelSettings own;
    own.output = recipe_.model.output;
    const fs::path restored = scratch_ / "reference.onnx";
    try {
      export_run(folder_, {onnx_target(text_in(run_, "target")), restored, options_.model});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input || !options_.model.empty() ||
          !fs::exists(folder_ / "model.onnx"))
        throw;
      observer_.on_message(LogLevel::warning,
                           std::string(error.what()) +
                               "; without it, runtimes are compared with zsq's own reading of "
                               "model.onnx, which does not show whether that file has changed");
      load_what_is_computed(folder_ / "model.onnx", own);
      report_.compared_with = "model.onnx";
      return;
    }
    load_what_is_computed(restored, own);
    report_.compared_with = "model.safetensors";
    compare_files(folder_ / "model.onnx", restored);
    const fs::path model =
        options_.model.empty() ? fs::path(text_in(run_, "model")) : options_.model;
    float_network_ = load_float(model, recipe_.model, Device::cpu);
  }

  // The network without the operators at its end that zsq does not compute, if it has any.
  void load_what_is_computed(const fs::path& file, const ModelSettings& own) {
    quantized_ = load_any(file, own, Device::cpu);
    const auto& tail = quantized_.graph.signature.tail;
    if (!tail) return;
    report_.not_compared = models::operators_of(*tail);
    whole_ = std::move(quantized_);
    const fs::path computed = scratch_ / "computed.onnx";
    write_without_tail(whole_, file, computed);
    quantized_ = load_any(computed, own, Device::cpu);
  }

  fs::path without_tail(const fs::path& file) const {
    if (report_.not_compared.empty() || file.extension() != ".onnx") return file;
    fs::path computed = scratch_ / ("computed_" + file.filename().string());
    write_without_tail(whole_, file, computed);
    return computed;
  }

  void compare_files(const fs::path& file, const fs::path& restored) {
    if (!fs::is_regular_file(file)) return;
    report_.unchanged = formats::read_file(file) == formats::read_file(restored);
    if (!report_.unchanged)
      observer_.on_message(LogLevel::warning,
                           file.string() +
                               " is not byte for byte what this version writes of "
                               "model.safetensors: another version wrote it, or it was changed");
  }

  bool has_float_network() const { return !float_network_.graph.nodes.empty(); }

  at::Tensor images() {
    const bool real = !options_.data.eval_data.empty();
    report_.images_kind = real ? "real" : "synthetic";
    return real ? real_images() : synthetic_images();
  }

  // Spread over all of them, since folders come class by class.
  at::Tensor real_images() {
    DataOptions data = options_.data;
    WarningsOnly warnings(observer_);
    resolve_preprocessing(quantized_, data, warnings);
    const auto source = eval::open_data(data, observer_);
    const std::int64_t size = source->size(), count = std::min(options_.images, size);
    std::vector<at::Tensor> images;
    for (std::int64_t i = 0; i < count; ++i)
      images.push_back(source->load(i * size / count, 1).images);
    require_input_shape(quantized_, images.at(0), data.eval_data);
    return at::cat(images);
  }

  // Those on which the run was measured, half of each kind.
  at::Tensor synthetic_images() {
    if (!has_float_network()) {
      resolve_preprocessing(quantized_, recipe_, observer_);
      return procedural_images(quantized_, recipe_, 0, options_.images,
                               stream_seed(0, "held_out", 0));
    }
    Observer silent;
    models::Model teacher = float_network_;
    resolve_preprocessing(teacher, recipe_, silent);
    require_statistics(teacher, recipe_, silent);
    const std::int64_t half = (options_.images + 1) / 2;
    recipe_.process.agreement_images = std::max(recipe_.process.agreement_images, half);
    std::vector<at::Tensor> images;
    for (const HeldOutImages& kind : held_out_images(teacher, text_in(run_, "source_sha256"),
                                                     recipe_, HeldOutUse::choices, {}, observer_))
      images.push_back(kind.images.narrow(0, 0, std::min(half, kind.images.size(0))));
    return at::cat(images).narrow(0, 0, std::min(options_.images, total(images)));
  }

  static std::int64_t total(const std::vector<at::Tensor>& parts) {
    std::int64_t images = 0;
    for (const at::Tensor& part : parts) images += part.size(0);
    return images;
  }

  void describe_reference() {
    report_.images = reference_.images.size(0);
    report_.outputs = reference_.outputs.size(1);
    report_.output_kind = losses::name_of(reference_.model.graph.signature.kind);
    report_.step = reference_.step;
    report_.rounding = reference_.rounding.largest;
    report_.relative_rounding = reference_.rounding.largest / reference_.magnitude;
  }

  RuntimeCheck check(const FileInRuntime& pair, const Python& python) {
    RuntimeCheck row{.file = pair.file.path.filename().string(),
                     .runtime = pair.runtime,
                     .version = pair.version,
                     .decides = pair.decides};
    observer_.on_message(LogLevel::info,
                         "running " + row.file + " in " + row.runtime + " " + row.version);
    try {
      const Json result = python.run(job_of(pair));
      compare(row, outputs("outputs.npy"));
      if (!row.equal && can_be_exact(pair))
        row.equal_if_exact = reference_.explains(
            difference_of(reference_.model.graph, reference_.outputs, outputs("exact.npy")));
      row.ms = number_in(result, "ms").value_or(0);
      row.float_ms = number_in(result, "float_ms").value_or(0);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input) throw;
      row.error = error.what();
    }
    return row;
  }

  bool can_be_exact(const FileInRuntime& pair) const {
    return pair.runtime == "onnxruntime" && processor_.pairs_may_saturate;
  }

  Json job_of(const FileInRuntime& pair) {
    const models::Signature& network = reference_.model.graph.signature;
    const auto layout = [&](const fs::path& file) {
      if (file.extension() == ".tflite") return "nhwc";
      if (file.extension() != ".onnx") return "nchw";
      if (network.one_dimensional) return "ncl";
      if (network.one_image) return "chw";
      return network.channels_last ? "nhwc" : "nchw";
    };
    Json job{{"runtime", pair.runtime},
             {"file", without_tail(pair.file.path).string()},
             {"layout", layout(pair.file.path)},
             {"images", (scratch_ / "images.npy").string()},
             {"outputs", (scratch_ / "outputs.npy").string()},
             {"threads", options_.threads}};
    if (can_be_exact(pair)) job["exact_outputs"] = (scratch_ / "exact.npy").string();
    if (!options_.latency) return job;
    job["seconds"] = kSeconds;
    if (!has_float_network() || !report_.not_compared.empty()) return job;
    const fs::path in_float =
        float_file(float_network_, pair.runtime, scratch_ / "float", observer_);
    if (in_float.empty()) return job;
    job["float"] = in_float.string();
    job["float_layout"] = layout(in_float);
    return job;
  }

  at::Tensor outputs(const char* name) const {
    const fs::path path = scratch_ / name;
    const at::Tensor given = models::to_tensor(formats::read_npy(path));
    fs::remove(path);
    if (given.sizes() != reference_.outputs.sizes())
      throw Error(ErrorCode::bad_input, "it gives outputs of shape " + c10::str(given.sizes()) +
                                            ", zsq " + c10::str(reference_.outputs.sizes()));
    return before_last_function(reference_.model.graph, given);
  }

  void compare(RuntimeCheck& row, const at::Tensor& given) const {
    const OutputDifference off = difference_of(reference_.model.graph, reference_.outputs, given);
    row.agreement = off.agreement;
    row.largest_difference = off.largest;
    row.relative_difference = off.largest / reference_.magnitude;
    row.steps = reference_.step > 0 ? off.largest / reference_.step : 0;
    row.equal = reference_.explains(off);
  }

  fs::path folder_;
  const CheckOptions& options_;
  Observer& observer_;
  Json run_;
  Recipe recipe_;
  Processor processor_;
  ScratchFolder scratch_;
  models::Model quantized_, float_network_;
  models::Model whole_;  // the quantized network with its tail, if it has one
  Reference reference_;
  CheckReport report_;
};

}  // namespace

CheckReport check_run(const fs::path& folder, const CheckOptions& options, Observer* observer) {
  Observer silent;
  return at_boundary([&] { return Check(folder, options, observer ? *observer : silent).run(); });
}

}  // namespace zsq
