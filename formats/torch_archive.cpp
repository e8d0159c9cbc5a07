// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_archive.h"

#include <cstring>
#include <utility>

#include "core/error.h"

namespace zsq::formats {
namespace {

using ArchiveKind = TorchArchive::Kind;

// The kind that one entry tells; `inside` is its name after the root folder.
ArchiveKind kind_told_by(const std::string& name, const std::string& inside) {
  if (inside == "data.pkl") return ArchiveKind::checkpoint;
  const bool graph = inside.starts_with("models/") && inside.ends_with(".json");
  if (graph || name == "serialized_exported_program.json") return ArchiveKind::exported_program;
  return ArchiveKind::unknown;
}

}  // namespace

TorchArchive::TorchArchive(ZipArchive zip) : zip_(std::move(zip)) {
  for (const auto& entry : zip_.entries()) {
    const auto slash = entry.name.find('/');
    const auto inside = slash == std::string::npos ? "" : entry.name.substr(slash + 1);
    const auto told = kind_told_by(entry.name, inside);
    if (told == ArchiveKind::unknown) continue;
    kind_ = told;
    root_ = entry.name.substr(0, inside.empty() ? 0 : slash + 1);
    break;
  }
  if (kind_ == ArchiveKind::checkpoint && find("constants.pkl")) kind_ = ArchiveKind::torchscript;
  const auto* order = find("byteorder");
  if (order && (order->size != 6 || std::memcmp(zip_.read(*order).data(), "little", 6) != 0))
    throw Error(ErrorCode::bad_input, "was saved on a big-endian machine; save it on another one");
}

std::vector<std::byte> TorchArchive::read(const std::string& name, std::uint64_t most) const {
  const auto* entry = find(name);
  if (!entry) throw Error(ErrorCode::bad_input, "its entry '" + name + "' is missing");
  if (entry->size > most)
    throw Error(ErrorCode::bad_input, "its entry '" + name + "' holds " +
                                          std::to_string(entry->size) + " bytes; at most " +
                                          std::to_string(most) + " were expected");
  return zip_.read(*entry);
}

std::string TorchArchive::read_text(const std::string& name, std::uint64_t most) const {
  const auto bytes = read(name, most);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

StorageReader TorchArchive::storages(const std::string& folder) const {
  return [this, folder](const StridedView& view) {
    const auto* entry = find(folder + view.storage);
    if (!entry)
      throw Error(ErrorCode::bad_input, "its storage " + view.storage + " is not in the archive");
    if (entry->size != storage_bytes(view))
      throw Error(ErrorCode::bad_input, "its storage " + view.storage + " declares " +
                                            std::to_string(storage_bytes(view)) +
                                            " bytes, but the archive holds " +
                                            std::to_string(entry->size));
    return zip_.read(*entry);
  };
}

}  // namespace zsq::formats
