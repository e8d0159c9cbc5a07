// SPDX-License-Identifier: Apache-2.0
#include "models/load.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "core/error.h"
#include "core/nearest_name.h"
#include "formats/foreign_format.h"
#include "formats/pth.h"
#include "formats/safetensors.h"
#include "formats/torch_archive.h"
#include "models/bn_statistics.h"
#include "models/channel_scales.h"
#include "models/clips_first.h"
#include "models/damaged_parameters.h"
#include "models/fold_affine.h"
#include "models/hugging_face.h"
#include "models/programs.h"

namespace zsq::models {
namespace {

enum class Format { onnx, safetensors, pth, torchscript, exported_program };

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::bad_input, "'" + path.string() + "' " + what);
}

// Names a model of a framework whose files are not read; comes back from others.
void refuse_foreign(const std::filesystem::path& path) {
  if (const auto foreign = formats::foreign_format(path); !foreign.empty()) refuse(path, foreign);
}

// What torch.save, torch.jit.save and torch.export.save write are zip archives.
Format detect_archive(const std::filesystem::path& path) {
  using Kind = formats::TorchArchive::Kind;
  switch (formats::TorchArchive(path).kind()) {
    case Kind::torchscript:
      return Format::torchscript;
    case Kind::exported_program:
      return Format::exported_program;
    case Kind::unknown:
      refuse_foreign(path);
      break;
    case Kind::checkpoint:
      break;
  }
  return Format::pth;
}

// ONNX begins with field 1, the IR version; safetensors with the header's length and a brace; the
// files of PyTorch are zip archives, or a pickle of protocol 2 or later.
Format detect_format(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) refuse(path, "does not exist; a model file was expected");
  if (!std::filesystem::is_regular_file(path)) {
    refuse_foreign(path);
    refuse(path, "is not a file");
  }
  std::array<char, 9> head{};
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), head.size());
  if (stream.gcount() == 0) refuse(path, "is empty or cannot be read; a model was expected");
  if (head[0] == 'P' && head[1] == 'K') return detect_archive(path);
  if (head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return Format::pth;
  if (head[8] == '{') return Format::safetensors;
  if (head[0] == '\x08') return Format::onnx;
  refuse_foreign(path);
  refuse(path,
         "is of an unknown format; ONNX, safetensors and files of PyTorch (checkpoints, "
         "TorchScript, exported programs) are known");
}

// What a checkpoint lacks, written by who has the Python code of the network.
std::string how_to_trace() {
  return "Write the whole network where its code is, in three lines of Python:\n"
         "  import torch  # `model`: the network with these weights; the size is that of its "
         "images\n"
         "  x = torch.zeros(1, 3, 224, 224)\n"
         "  torch.jit.trace(model.eval(), x).save(\"network.pt\")\n"
         "and give network.pt in place of this file";
}

// The built-in architectures that a name may mean: of its kin, or the likely misspelling.
std::string near_names(const std::string& name) {
  constexpr std::size_t kMost = 5;
  const auto known = architecture_names();
  const auto stem = name.substr(0, name.find('.'));
  const auto family = stem.substr(0, stem.find_first_of("0123456789_"));
  std::vector<std::string> near;
  if (const auto nearest = nearest_name(stem, known); !stem.empty() && !nearest.empty())
    near.push_back(nearest);
  for (const auto& one : known)
    if (family.size() > 2 && one.starts_with(family) && near.size() < kMost &&
        std::count(near.begin(), near.end(), one) == 0)
      near.push_back(one);
  std::string text = ". A built-in architecture is named with --arch instead";
  for (std::size_t i = 0; i < near.size(); ++i) text += (i == 0 ? " (near: " : ", ") + near[i];
  return text + (near.empty() ? "" : ")") + "; `zsq inspect --list_archs` lists all " +
         std::to_string(known.size());
}

// The network is not in the file: the user names it, or the metadata `noted` does.
Model build_from(const formats::NamedArrays& state, const LoadOptions& options,
                 const std::string& noted, const std::filesystem::path& path) {
  const auto known = architecture_names();
  auto name = options.arch;
  const auto untagged = noted.substr(0, noted.find('.'));
  if (name.empty() && std::count(known.begin(), known.end(), untagged) > 0) name = noted;
  if (name.empty())
    refuse(path, "holds weights only" +
                     (noted.empty() ? "" : " (its metadata calls the network '" + noted + "')") +
                     ", not how the layers are connected. " + how_to_trace() + near_names(noted));
  if (std::count(known.begin(), known.end(), name.substr(0, name.find('.'))) == 0)
    throw Error(ErrorCode::usage,
                "'" + name + "' is no built-in architecture. " + how_to_trace() + near_names(name));
  if (state.empty()) refuse(path, "holds no tensors");
  return build(name, state, {.image_size = options.image_size});
}

Model read(const std::filesystem::path& path, const LoadOptions& options) {
  if (formats::is_hugging_face_folder(path))
    return build_hugging_face(formats::read_hugging_face(path), options);
  const auto format = detect_format(path);
  if (format == Format::onnx) return import_onnx(formats::onnx::read(path), options);
  if (format == Format::torchscript) {
    return import_torchscript(formats::read_torchscript(path), options);
  }
  if (format == Format::exported_program) {
    return import_exported_program(formats::read_exported_program(path), options);
  }
  Model model;
  if (format == Format::safetensors) {
    const auto file = formats::read_safetensors(path);
    const auto noted = file.metadata.find("arch");
    model =
        build_from(file.tensors, options, noted == file.metadata.end() ? "" : noted->second, path);
    model.format = "safetensors";
  } else {
    model = build_from(formats::read_pth(path), options, "", path);
    model.format = "pth";
  }
  return model;
}

}  // namespace

Model load(const std::filesystem::path& path, const LoadOptions& options) {
  try {
    auto model = read(path, options);
    model.source_path = path.string();
    refuse_damaged_parameters(model);
    if (!options.bn_statistics.empty()) add_batch_norm_from(options.bn_statistics, model);
    fold_affine_pairs(model);
    fold_channel_scales(model);
    put_clips_first(model);
    return model;
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(path.string()) != std::string::npos) throw;
    throw Error(error.code(), "'" + path.string() + "': " + message);
  }
}

}  // namespace zsq::models
