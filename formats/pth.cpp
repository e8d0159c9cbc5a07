// SPDX-License-Identifier: Apache-2.0
#include "formats/pth.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/in_file.h"
#include "formats/input_file.h"
#include "formats/limits.h"
#include "formats/pickle.h"
#include "formats/pth_state.h"
#include "formats/torch_archive.h"

namespace zsq::formats {
namespace {

using PickleKind = PickleValue::Kind;

void require_little_endian(bool little) {
  if (!little)
    throw Error(ErrorCode::bad_input, "was saved on a big-endian machine; save it on another one");
}

// <root>/data.pkl with the objects, <root>/data/<key> with the bytes of each storage.
NamedArrays read_zip_layout(const std::filesystem::path& path) {
  const TorchArchive archive(path);
  switch (archive.kind()) {
    case TorchArchive::Kind::checkpoint:
      break;
    case TorchArchive::Kind::torchscript:
      throw Error(ErrorCode::bad_input,
                  "is a TorchScript archive; a checkpoint of torch.save was expected");
    case TorchArchive::Kind::exported_program:
      throw Error(ErrorCode::bad_input,
                  "is an exported program; a checkpoint of torch.save was expected");
    case TorchArchive::Kind::unknown:
      throw Error(ErrorCode::bad_input,
                  "is a zip archive without <name>/data.pkl, so not a checkpoint of torch.save; "
                  "save model.state_dict() with torch.save");
  }
  const auto bytes = archive.read("data.pkl", kMaxPickleBytes);
  PickleReader reader(bytes);
  const PickleValue* object = reader.next();
  return make_dense(find_state_dict(*object), archive.storages("data/"), archive.zip().file_size());
}

struct Place {
  std::uint64_t offset, elements;
};

// After the pickles: for each key an int64 element count and the elements. The element sizes are
// known from the storages that the object names.
std::map<std::string, Place> locate_storages(const InputFile& file, const PickleValue& keys,
                                             const std::map<std::string, DType>& dtypes,
                                             std::uint64_t at) {
  std::map<std::string, Place> places;
  for (const PickleValue* key : keys.items) {
    const auto dtype = key->is(PickleKind::text) ? dtypes.find(key->text) : dtypes.end();
    if (dtype == dtypes.end())
      throw Error(ErrorCode::bad_input, "lists a storage that its pickle does not name");
    std::int64_t elements = 0;
    std::memcpy(&elements, file.read(at, sizeof elements).data(), sizeof elements);
    at += sizeof elements;
    const std::uint64_t bytes = byte_count(dtype->second, {&elements, 1});
    if (bytes > file.size() - at)
      throw Error(ErrorCode::bad_input,
                  "storage " + key->text + " needs " + std::to_string(bytes) +
                      " bytes, but the file ends before; it is cut or damaged");
    places[key->text] = {at, static_cast<std::uint64_t>(elements)};
    at += bytes;
  }
  return places;
}

bool is_magic(const PickleValue& value) {
  constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  return value.is(PickleKind::big_integer) && value.text == kMagic;
}

// Five pickles (magic number, version, machine, object, storage keys), then the storages.
NamedArrays read_legacy_layout(const InputFile& file) {
  const auto bytes = file.read(0, std::min(file.size(), kMaxPickleBytes));
  PickleReader reader(bytes);
  const auto not_a_checkpoint = [] {
    return Error(ErrorCode::bad_input,
                 "is not a PyTorch checkpoint (or older than PyTorch 0.1.11, a tar archive): save "
                 "model.state_dict() again with a newer PyTorch");
  };
  if (bytes.empty()) throw Error(ErrorCode::bad_input, "is empty");
  if (bytes[0] != std::byte{0x80} || !is_magic(*reader.next())) throw not_a_checkpoint();
  if (const auto* version = reader.next();
      !version->is(PickleKind::integer) || version->integer != 1001)
    throw not_a_checkpoint();
  const PickleValue* little = reader.next()->get("little_endian");
  require_little_endian(little && little->is(PickleKind::boolean) && little->integer != 0);
  const PickleValue* object = reader.next();
  const PickleValue* keys = reader.next();
  if (!keys->is(PickleKind::list)) throw not_a_checkpoint();

  const auto places = locate_storages(file, *keys, reader.storages(), reader.position());
  const StorageReader read = [&](const StridedView& view) {
    const auto place = places.find(view.storage);
    if (place == places.end() ||
        place->second.elements != static_cast<std::uint64_t>(view.elements))
      throw Error(ErrorCode::bad_input,
                  "its storage " + view.storage + " is not in the file with the declared size");
    return file.read(place->second.offset, storage_bytes(view));
  };
  return make_dense(find_state_dict(*object), read, file.size());
}

}  // namespace

NamedArrays read_pth(const std::filesystem::path& path) {
  return in_file(path, [&] {
    const InputFile file(path);
    constexpr std::string_view kZip = "PK\x03\x04";
    const auto start = file.read(0, std::min<std::uint64_t>(file.size(), kZip.size()));
    if (start.size() == kZip.size() && std::memcmp(start.data(), kZip.data(), kZip.size()) == 0)
      return read_zip_layout(path);
    return read_legacy_layout(file);
  });
}

}  // namespace zsq::formats
