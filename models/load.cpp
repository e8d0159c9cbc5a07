// SPDX-License-Identifier: Apache-2.0
#include "models/load.h"

#include <array>
#include <fstream>

#include "core/error.h"
#include "formats/pth.h"
#include "formats/safetensors.h"

namespace zsq::models {
namespace {

enum class Format { onnx, safetensors, pth };

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::bad_input, "'" + path.string() + "' " + what);
}

// ONNX begins with field 1, the IR version; safetensors with the header's length and a brace; .pth
// is a zip archive or a pickle of protocol 2 or later.
Format detect_format(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) refuse(path, "does not exist; a model file was expected");
  if (!std::filesystem::is_regular_file(path)) refuse(path, "is not a file");
  std::array<char, 9> head{};
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), head.size());
  if (stream.gcount() == 0) refuse(path, "is empty or cannot be read");
  if (head[0] == 'P' && head[1] == 'K') return Format::pth;
  if (head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return Format::pth;
  if (head[8] == '{') return Format::safetensors;
  if (head[0] == '\x08') return Format::onnx;
  refuse(path,
         "is of an unknown format; ONNX, safetensors and PyTorch checkpoints (.pth) are known");
}

// The network is not in the file: it must be named, by the user or in the file's metadata.
Model build_from(const formats::NamedArrays& state, const std::string& architecture,
                 const std::filesystem::path& path) {
  if (architecture.empty()) {
    std::string known;
    for (const auto& name : architecture_names()) known += (known.empty() ? "" : ", ") + name;
    refuse(path, "holds weights only: name the network with --arch. Known: " + known);
  }
  if (state.empty()) refuse(path, "holds no tensors");
  return build(architecture, state);
}

}  // namespace

Model load(const std::filesystem::path& path, const LoadOptions& options) {
  Model model;
  switch (detect_format(path)) {
    case Format::onnx:
      model = import_onnx(formats::onnx::read(path), options);
      break;
    case Format::safetensors: {
      const auto file = formats::read_safetensors(path);
      const auto named = file.metadata.find("arch");
      const bool given = !options.arch.empty() || named == file.metadata.end();
      model = build_from(file.tensors, given ? options.arch : named->second, path);
      model.format = "safetensors";
      break;
    }
    case Format::pth:
      model = build_from(formats::read_pth(path), options.arch, path);
      model.format = "pth";
      break;
  }
  model.source_path = path.string();
  return model;
}

}  // namespace zsq::models
