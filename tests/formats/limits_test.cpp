// SPDX-License-Identifier: Apache-2.0
// A file beyond each limit of formats/limits.h, small enough to be mailed.
#include "formats/limits.h"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/exported_program.h"
#include "formats/hugging_face.h"
#include "formats/json.h"
#include "formats/onnx.h"
#include "formats/pth.h"
#include "formats/safetensors.h"
#include "formats/torchscript.h"
#include "tests/formats/onnx_bytes.h"
#include "tests/formats/pickle_bytes.h"

namespace zsq::formats {
namespace {

using namespace pickled;

class Limits : public testing::Test {
 protected:
  template <class Reader>
  void refused(const std::string& bytes, Reader&& reader, std::string_view part) const {
    const auto path = folder_.file("x", bytes);
    expect_error([&] { reader(path); }, ErrorCode::bad_input, part);
  }
  TempFolder folder_;
};

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string archive(const std::vector<std::pair<std::string, std::size_t>>& entries) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> contents;
  for (const auto& [name, size] : entries)
    contents.emplace_back(name, std::vector<std::byte>(size));
  const auto zip = make_zip(contents);
  return {reinterpret_cast<const char*>(zip.data()), zip.size()};
}

// Overwrites a field of the central directory, which readers believe.
template <class T>
void set(std::string& zip, std::size_t entry, std::size_t field, T value) {
  std::size_t at = zip.find("PK\x01\x02");
  for (; entry > 0; --entry) at = zip.find("PK\x01\x02", at + 1);
  std::memcpy(zip.data() + at + field, &value, sizeof value);
}
constexpr std::size_t kMethod = 10, kPacked = 20, kUnpacked = 24, kOffset = 42;

void open_zip(const std::filesystem::path& path) { const ZipArchive zip(path); }

TEST_F(Limits, ArchiveBombs) {
  std::string bomb = archive({{"a", 1 << 20}});
  set<std::uint16_t>(bomb, 0, kMethod, 8);  // deflate
  set<std::uint32_t>(bomb, 0, kUnpacked, 90 << 20);
  EXPECT_NO_THROW(open_zip(folder_.file("x", bomb)));
  set<std::uint32_t>(bomb, 0, kUnpacked, 110 << 20);
  refused(bomb, open_zip, "would unfold to more than 100 times");
}

// Small archives may pack well.
TEST_F(Limits, ConstantArraysAreNoBombs) {
  std::string zeros = archive({{"a", 1000}});
  set<std::uint16_t>(zeros, 0, kMethod, 8);
  set<std::uint32_t>(zeros, 0, kUnpacked, 1'000'000);
  EXPECT_NO_THROW(open_zip(folder_.file("x", zeros)));
}

TEST_F(Limits, EntriesOfOneArchiveShareNoBytes) {
  std::string overlapping = archive({{"a", 1000}, {"b", 10}});
  set<std::uint32_t>(overlapping, 1, kPacked, 1000);
  set<std::uint32_t>(overlapping, 1, kUnpacked, 1000);
  set<std::uint32_t>(overlapping, 1, kOffset, 0);
  refused(overlapping, open_zip, "impossible size");
}

TEST_F(Limits, PicklesRepeatNoLargeValues) {
  const auto large = text(std::string(1 << 20, 'x'));
  const auto tag = global("torch.jit._pickle", "restore_type_tag") + "h\1" + text("Any") + "\x86R";
  refused(zip_file(large + "q\1(" + repeated(tag, 200) + "t", {}), read_pth,
          "repeats its values too often");
  const auto name = "h\2h\2\x93";
  const auto names = text(std::string(499, 'x')) + "q\2(" + repeated(name, 200'000) + "t";
  refused(zip_file(names, {}), read_pth, "repeats its values too often");
}

std::string module(const std::vector<std::pair<std::string, std::string>>& state) {
  return global("torch.nn", "Module") + ")\x81" + dict(state) + "b";
}

TEST_F(Limits, ModulesThatManyOthersName) {
  std::vector<std::pair<std::string, std::string>> tensors, children;
  const auto one = tensor(storage("FloatStorage", "0", 1), 0, {1}, {1});
  for (int i = 0; i < 20; ++i) tensors.emplace_back(std::to_string(i), one);
  const auto child = module({{"_parameters", dict(tensors)}});
  for (int i = 0; i < 6000; ++i)
    children.emplace_back(std::to_string(i), i ? "h\1" : child + "q\1");
  refused(zip_file(module({{"_modules", dict(children)}}), {{"0", raw(0.f)}}), read_pth,
          "more than 100000 tensors");
  refused(zip_file(dict({{std::string(1001, 'x'), one}}), {{"0", raw(0.f)}}), read_pth,
          "more than 1000 characters");
}

TEST_F(Limits, TorchScriptRepeatsNoLargeTexts) {
  const auto list = "](" + repeated("h\1", 200) + "e";
  const auto net = global("__torch__.net", "Net") + ")\x81" +
                   dict({{"a", text(std::string(1 << 20, 'x')) + "q\1"}, {"b", list}}) + "b";
  refused(zip_file(net, {}, {{"constants.pkl", kProtocol + ")."}}), read_torchscript,
          "repeats its texts");
}

TEST_F(Limits, JsonIsShallow) {
  EXPECT_NO_THROW(require_shallow_json(repeated("[", 100) + repeated("]", 100)));
  EXPECT_NO_THROW(require_shallow_json(repeated("[]", 1000)));
  EXPECT_NO_THROW(require_shallow_json("\"" + repeated("[\\\"", 1000) + "\""));
  EXPECT_THROW(require_shallow_json(repeated("{\"a\":", 101)), Error);

  const auto deep = repeated("[", 100'000) + repeated("]", 100'000);
  const auto header = R"({"a":{"dtype":)" + deep + R"(,"shape":[],"data_offsets":[0,4]}})";
  refused(raw(static_cast<std::uint64_t>(header.size())) + header + raw(0.f), read_safetensors,
          "nested deeper than 100");
  const auto graph = R"({"schema_version": {"major": )" + deep + "}}";
  const auto view = std::as_bytes(std::span(graph));
  const auto zip = make_zip({{"net/models/model.json", {view.begin(), view.end()}}});
  refused({reinterpret_cast<const char*>(zip.data()), zip.size()}, read_exported_program,
          "nested deeper than 100");
  folder_.file("config.json", R"({"depths": )" + deep + "}");
  expect_error([&] { read_hugging_face(folder_.path()); }, ErrorCode::bad_input, "nested deeper");
}

TEST_F(Limits, OnnxCountsWhatTakesTwoBytes) {
  refused(onnx::model(repeated(onnx::text(1, ""), 50'001)), onnx::read, "more than 50000 nodes");
  refused(onnx::model(repeated(onnx::text(11, ""), 100'001)), onnx::read, "inputs");
  refused(onnx::model(repeated(onnx::text(12, ""), 100'001)), onnx::read, "outputs");
  refused(onnx::model(onnx::text(1, repeated(onnx::text(5, ""), 33))), onnx::read,
          "more than 32 attributes");
  std::string sets;
  for (int i = 0; i < 101; ++i) sets += onnx::text(8, onnx::text(1, std::to_string(i)));
  refused(onnx::model("") + sets, onnx::read, "more than 100 operator sets");
  const auto in_branch = [](const std::string& graph) {
    return onnx::text(1, onnx::text(5, onnx::text(6, graph)));
  };
  std::string deep;
  for (int level = 0; level < 17; ++level) deep = in_branch(deep);
  refused(onnx::model(deep), onnx::read, "more than 16 levels");
  const auto reading = [&](int count) {
    std::string names;
    for (int i = 0; i < count; ++i) names += onnx::text(1, std::to_string(i));
    return in_branch(onnx::text(1, names));
  };
  refused(onnx::model(reading(100'001)), onnx::read, "more than 100000 names");
  refused(onnx::model(reading(60'000) + reading(60'000)), onnx::read, "more than 100000 names");
  const auto shape = onnx::text(2, onnx::text(1, onnx::text(2, repeated(onnx::text(1, ""), 65))));
  refused(onnx::model(onnx::text(11, shape)), onnx::read, "more than 64 dimensions");
}

}  // namespace
}  // namespace zsq::formats
