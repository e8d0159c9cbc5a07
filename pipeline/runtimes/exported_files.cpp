// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/exported_files.h"

#include <algorithm>
#include <cstdlib>

#include "core/choice.h"
#include "core/error.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Of a file's target; the first one that is installed decides.
struct Readers {
  Names written_for, others;
  const char* package;  // to be installed
};

Readers readers_of(const ExportedFile& file) {
  const bool of_the_run = file.path.filename() == "model.onnx";
  switch (file.target) {
    case Target::tflite:
      return {{"litert", "tflite"}, {}, "ai-edge-litert"};
    case Target::ncnn:
      return {{"ncnn"}, {}, "ncnn"};
    case Target::openvino:
      return {{"openvino"}, of_the_run ? Names{"onnxruntime"} : Names{}, "openvino"};
    case Target::onnxruntime:
    case Target::tensorrt:
    case Target::generic:
    case Target::qcdq:
      break;
  }
  return {{"onnxruntime"}, of_the_run ? Names{"openvino"} : Names{}, "onnxruntime"};
}

std::vector<FileInRuntime> pairs_of(const std::vector<ExportedFile>& files, const Json& installed) {
  std::vector<FileInRuntime> pairs;
  for (const ExportedFile& file : files) {
    const Readers readers = readers_of(file);
    const auto add = [&](const std::string& runtime, bool decides) {
      if (!installed.contains(runtime)) return false;
      pairs.push_back({file, runtime, text_in(installed, runtime), decides});
      return true;
    };
    std::ranges::any_of(readers.written_for,
                        [&](const auto& name) { return add(name, !file.beside_the_runs_own); });
    for (const std::string& name : readers.others) add(name, false);
  }
  return pairs;
}

std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Names all_readers(const std::vector<ExportedFile>& files) {
  Names names;
  for (const ExportedFile& file : files) {
    const Readers readers = readers_of(file);
    for (const Names& some : {readers.written_for, readers.others})
      for (const std::string& name : some)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

[[noreturn]] void refuse(const std::vector<ExportedFile>& files, const Names& asked,
                         const std::string& python) {
  Names names;
  for (const ExportedFile& file : files) names.push_back(file.path.filename().string());
  throw Error(
      ErrorCode::usage,
      "no runtime is found that can run " + joined(names) + "; looked for " +
          joined(all_readers(files)) + " in " +
          (asked.empty() ? "no Python, because there is no python3 on PATH" : joined(asked)) +
          ". Install one with `" + (python.empty() ? "python3" : python) + " -m pip install " +
          readers_of(files.front()).package +
          "`, or name a Python that has it by --python or ZSQ_PYTHON");
}

std::string not_checked(const ExportedFile& file, const std::string& python) {
  std::string words = file.path.filename().string();
  words += " is not checked: " + python + " has no " + joined(readers_of(file).written_for);
  words += "; `" + python + " -m pip install ";
  words += readers_of(file).package;
  words += "` brings it";
  return words;
}

}  // namespace

Target onnx_target(const std::string& target) {
  const Target own = choice<Target>("target", target);
  return own == Target::tflite || own == Target::ncnn ? Target::onnxruntime : own;
}

std::vector<ExportedFile> exported_files(const fs::path& folder, const std::string& target) {
  std::vector<ExportedFile> files;
  const auto add = [&](const std::string& name, Target of) {
    if (fs::is_regular_file(folder / name)) files.push_back({fs::absolute(folder / name), of});
  };
  add("model.onnx", onnx_target(target));
  for (const std::string& name : zsq::names_of<Target>()) {
    const Target of = choice<Target>("target", name);
    if (of == Target::tflite)
      add("model.tflite", of);
    else
      add("model." + name + (of == Target::ncnn ? ".param" : ".onnx"), of);
  }
  const Target own = choice<Target>("target", target);
  if (!files.empty() && own != onnx_target(target))
    files.front().beside_the_runs_own =
        files.front().target != own &&
        std::ranges::any_of(files, [&](const ExportedFile& file) { return file.target == own; });
  if (files.empty())
    throw Error(
        ErrorCode::bad_input,
        "'" + folder.string() +
            "' holds no file for a runtime: neither model.onnx (export.onnx=false?) nor one "
            "that `zsq export` writes into it");
  return files;
}

FoundRuntimes find_runtimes(const std::vector<ExportedFile>& files, const fs::path& asked_for,
                            const ScratchFolder& scratch, double seconds, Observer& observer) {
  const char* variable = std::getenv("ZSQ_PYTHON");
  const bool named = !asked_for.empty() || (variable && *variable);
  Names asked;
  std::string last;
  for (const fs::path& program : python_programs(asked_for)) {
    asked.push_back(last = program.string());
    Python python(program, scratch, seconds, observer);
    Json installed;
    try {
      installed = member(python.run(Json::object()), "runtimes");
    } catch (const Error& error) {
      if (named || error.code() == ErrorCode::stopped) throw;
      asked.back() += " (which fails)";
      continue;
    }
    if (!installed.is_object()) continue;
    auto pairs = pairs_of(files, installed);
    if (pairs.empty()) continue;
    for (const ExportedFile& file : files)
      if (std::ranges::none_of(pairs, [&](const auto& p) { return p.file.path == file.path; }))
        observer.on_message(LogLevel::warning, not_checked(file, last));
    return {std::move(python), std::move(pairs)};
  }
  refuse(files, asked, last);
}

}  // namespace zsq::pipeline
