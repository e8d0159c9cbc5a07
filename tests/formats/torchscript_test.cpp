// SPDX-License-Identifier: Apache-2.0
#include "formats/torchscript.h"

#include <gtest/gtest.h>

#include "tests/formats/pickle_bytes.h"

namespace zsq::formats::torchscript_test {
namespace {

using namespace pickled;
using Kind = TorchScript::Value::Kind;

const std::string kFloats = raw(0.f) + raw(1.f) + raw(2.f) + raw(3.f) + raw(4.f) + raw(5.f);
const std::string kCode =
    "class Net(Module):\n  def forward(self, x: Tensor) -> Tensor:\n    return x\n";

std::string object(const std::string& type,
                   const std::vector<std::pair<std::string, std::string>>& attributes) {
  return global("__torch__.net", type) + ")\x81" + dict(attributes) + "b";
}
std::string matrix() { return tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1}); }
std::string tagged(const std::string& tag, const std::string& value) {
  return global("torch.jit._pickle", tag) + value + text("Dict[str, List[Any]]") + "\x86R";
}

// A network with one of each kind of attribute, and a module under two names.
std::string network() {
  const std::string real = std::string("G\x3f\xe0\0\0\0\0\0\0", 9);  // 0.5
  return object("Net",
                {{"training", "\x89"},
                 {"count", integer(-3)},
                 {"rate", real},
                 {"note", text("hello")},
                 {"nothing", "N"},
                 {"sizes", global("torch.jit._pickle", "build_intlist") + tuple({4, 5}) + "\x85R"},
                 {"layer", object("Layer", {{"weight", matrix()}}) + "q\x07"},
                 {"again", "h\x07"}});
}

Storages others(const std::string& constants = ")", const std::string& traced = "") {
  Storages all{{"byteorder", "little"},
               {"constants.pkl", kProtocol + constants + "."},
               {"constants/0", kFloats},
               {"code/__torch__/net.py", kCode},
               {"code/__torch__/net.py.debug_pkl", "not code"}};
  if (!traced.empty()) all.emplace_back("traced_inputs.pkl", kProtocol + traced + ".");
  return all;
}

TorchScript read(const std::string& bytes) {
  const TempFolder folder;
  return read_torchscript(folder.file("x.pt", bytes));
}

TEST(TorchScriptFile, ObjectsAndTensors) {
  const auto script = read(zip_file(network(), {{"0", kFloats}}, others()));
  ASSERT_EQ(script.objects.size(), 2u);
  const auto& net = script.objects[0];
  EXPECT_EQ(net.type, "__torch__.net.Net");
  EXPECT_EQ(net.path, "");
  EXPECT_EQ(net.attributes.at("training").kind, Kind::boolean);
  EXPECT_EQ(net.attributes.at("training").integer, 0);
  EXPECT_EQ(net.attributes.at("count").integer, -3);
  EXPECT_EQ(net.attributes.at("rate").real, 0.5);
  EXPECT_EQ(net.attributes.at("note").text, "hello");
  EXPECT_EQ(net.attributes.at("nothing").kind, Kind::none);
  ASSERT_EQ(net.attributes.at("sizes").items.size(), 2u);
  EXPECT_EQ(net.attributes.at("sizes").items[1].integer, 5);
  // One module under two names is one object, called after the first.
  EXPECT_EQ(net.attributes.at("layer").index, 1u);
  EXPECT_EQ(net.attributes.at("again").index, 1u);
  EXPECT_EQ(script.objects[1].path, "layer");
  EXPECT_EQ(script.objects[1].attributes.at("weight").index, 0u);
  expect_same(script.tensors,
              {{"layer.weight", make_array<float>(DType::f32, {2, 3}, {0, 1, 2, 3, 4, 5})}});
  EXPECT_EQ(script.code, (std::map<std::string, std::string>{{"__torch__/net.py", kCode}}));
  EXPECT_TRUE(script.traced_shape.empty());
}

TEST(TorchScriptFile, ConstantsAndTheTracedShape) {
  const auto constant = tensor(storage("FloatStorage", "0", 6), 2, {3}, {1});
  const auto image = tensor(storage("FloatStorage", "0", 6), 0, {1, 3, 1, 2}, {6, 2, 2, 1});
  const auto traced = tagged("restore_type_tag", dict({{"forward", "](" + image + "e"}}));
  const auto script =
      read(zip_file(network(), {{"0", kFloats}}, others(constant + "\x85", traced)));
  EXPECT_EQ(script.constants, std::vector<std::size_t>{1});
  ASSERT_EQ(script.tensors.size(), 2u);
  EXPECT_EQ(script.tensors[1].first, "CONSTANTS.c0");
  expect_same(script.tensors[1].second, make_array<float>(DType::f32, {3}, {2, 3, 4}));
  EXPECT_EQ(script.traced_shape, (std::vector<std::int64_t>{1, 3, 1, 2}));
}

TEST(TorchScriptFile, RefusalsSayWhatWasFound) {
  const auto refused = [](const std::string& bytes, std::string_view part) {
    expect_error([&] { read(bytes); }, ErrorCode::bad_input, part);
  };
  refused(zip_file(network(), {{"0", kFloats}}), "no TorchScript archive");
  refused(zip_file(dict({}), {}, others()), "holds no module");
  refused(zip_file(network(), {}, others()), "storage 0 is not in the archive");
  refused(zip_file(network(), {{"0", "x"}}, others()), "declares 24 bytes");
  refused(zip_file(network(), {{"0", kFloats}}, {{"byteorder", "big"}, {"constants.pkl", ""}}),
          "big-endian");
  const auto evil = object("Net", {{"x", global("os", "system") + text("true") + "\x85R"}});
  refused(zip_file(evil, {}, others()), "names os.system");
  const auto loop = global("__torch__.net", "Net") + ")\x81q\1}(" + text("me") + "](h\1eub";
  EXPECT_EQ(read(zip_file(loop, {}, others())).objects.size(), 1u);
  const auto long_code =
      Storages{{"constants.pkl", kProtocol + ")."}, {"code/a.py", std::string((4 << 20) + 1, ' ')}};
  refused(zip_file(network(), {{"0", kFloats}}, long_code), "code is longer");
}

TEST(TorchScriptFile, DamageIsAnErrorOrHarmless) {
  const TempFolder folder;
  const auto bytes = zip_file(network(), {{"0", kFloats}}, others());
  expect_every_prefix_fails(folder, bytes, read_torchscript);
  expect_survives_changed_bytes(folder, bytes, read_torchscript);
}

}  // namespace
}  // namespace zsq::formats::torchscript_test
