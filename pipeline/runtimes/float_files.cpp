// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/float_files.h"

#include "core/error.h"
#include "exporters/registry.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

Target target_of(const std::string& runtime) {
  if (runtime == "litert" || runtime == "tflite") return Target::tflite;
  if (runtime == "ncnn") return Target::ncnn;
  return Target::onnxruntime;
}

}  // namespace

fs::path float_file(const models::Model& network, const std::string& runtime, const fs::path& base,
                    Observer& observer) {
  const Target target = target_of(runtime);
  if (target == Target::onnxruntime && network.format == "onnx")
    return fs::absolute(network.source_path);
  const exporters::TargetFile& form = exporters::target_file(target);
  fs::path path = base;
  path += form.extension;
  if (fs::exists(path)) return path;
  quant::Student student{network.graph, network.parameters, {}};  // without quantizers
  student.options.target = target;
  try {
    form.write(student, path, {}, {});
    return path;
  } catch (const Error& error) {
    observer.on_message(LogLevel::debug,
                        "the float network is not timed in " + runtime + ": " + error.what());
    return {};
  }
}

}  // namespace zsq::pipeline
