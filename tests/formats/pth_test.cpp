// SPDX-License-Identifier: Apache-2.0
#include "formats/pth.h"

#include <gtest/gtest.h>

#include "tests/formats/pickle_bytes.h"

namespace zsq::formats::pth_test {
namespace {

using namespace pickled;

// Six floats, 0 to 5, and two 64-bit integers.
const std::string kFloats = raw(0.f) + raw(1.f) + raw(2.f) + raw(3.f) + raw(4.f) + raw(5.f);
const std::string kLongs = raw<std::int64_t>(-1) + raw<std::int64_t>(1LL << 40);

std::string matrix(std::int32_t elements = 6) {
  return tensor(storage("FloatStorage", "0", elements), 0, {2, 3}, {3, 1});
}
std::string counter() { return tensor(storage("LongStorage", "1", 2), 1, {}, {}); }
std::string state() { return dict({{"w", matrix()}, {"n", counter()}}); }

NamedArrays state_in_memory() {
  return {{"w", make_array<float>(DType::f32, {2, 3}, {0, 1, 2, 3, 4, 5})},
          {"n", make_array<std::int64_t>(DType::i64, {}, {1LL << 40})}};
}

TEST(Pth, BothLayouts) {
  const TempFolder folder;
  expect_same(read_pth(folder.file("x", zip_file(state(), {{"0", kFloats}, {"1", kLongs}}))),
              state_in_memory());
  // The storages of the legacy layout come in the order of the list of keys. View info is None.
  const std::string old_matrix = tensor(storage("FloatStorage", "0", 6, "N"), 0, {2, 3}, {3, 1});
  const std::string legacy =
      legacy_file(dict({{"w", old_matrix}, {"n", counter()}}),
                  {{"1", raw<std::int64_t>(2) + kLongs}, {"0", raw<std::int64_t>(6) + kFloats}});
  expect_same(read_pth(folder.file("y", legacy)), state_in_memory());
}

TEST(Pth, FindsTheStateDict) {
  const TempFolder folder;
  const std::string prefixed = dict({{"module.w", matrix()}, {"module.n", counter()}});
  const std::string module = global("net", "Net") + ")\x81" +
                             dict({{"_parameters", dict({{"w", matrix()}, {"bias", "N"}})},
                                   {"_buffers", dict({})},
                                   {"_modules", dict({})}}) +
                             "b";
  const std::string parent = global("net", "Parent") + ")\x81" +
                             dict({{"_parameters", dict({})},
                                   {"_buffers", dict({{"n", counter()}})},
                                   {"_modules", dict({{"child", module}, {"none", "N"}})}}) +
                             "b";
  const auto read = [&](const std::string& object) {
    return read_pth(folder.file("x", zip_file(object, {{"0", kFloats}, {"1", kLongs}})));
  };
  const NamedArrays wanted = state_in_memory();
  expect_same(read(prefixed), wanted);
  for (const char* key : {"state_dict", "model_state_dict", "model", "net", "model_ema"})
    expect_same(read(dict({{"epoch", "K\3"}, {"best", "K\4"}, {key, prefixed}})), wanted);
  // Most values are tensors, not all.
  expect_same(read(dict({{"w", matrix()}, {"n", counter()}, {"note", text("hello")}})), wanted);
  const NamedArrays from_module = {{"n", wanted[1].second}, {"child.w", wanted[0].second}};
  expect_same(read(parent), from_module);
  expect_same(read(dict({{"model", parent}})), from_module);
  expect_error([&] { read(dict({{"epoch", "K\3"}})); }, ErrorCode::bad_input, "no state dict");
  expect_error(
      [&] {
        read(dict({{"w", matrix()}, {"module.w", matrix()}}));
      },
      ErrorCode::bad_input, "occurs twice");
}

TEST(Pth, ModuleThatHoldsItselfEnds) {
  const TempFolder folder;
  const std::string loop = global("net", "Net") + ")\x81q\1}(" + text("_modules") + "}(" +
                           text("a") + "h\1" + text("b") + "h\1uub";
  expect_error([&] { read_pth(folder.file("x", zip_file(loop, {}))); }, ErrorCode::bad_input,
               "nested too deeply");
}

TEST(Pth, ViewsAreMadeDense) {
  const TempFolder folder;
  const std::string floats = storage("FloatStorage", "0", 6);
  const auto read = [&](const std::string& view) {
    return read_pth(folder.file("x", zip_file(dict({{"v", view}}), {{"0", kFloats}})))[0].second;
  };
  expect_same(read(tensor(floats, 0, {3, 2}, {1, 3})),
              make_array<float>(DType::f32, {3, 2}, {0, 3, 1, 4, 2, 5}));
  expect_same(read(tensor(floats, 1, {2, 2}, {3, 1})),
              make_array<float>(DType::f32, {2, 2}, {1, 2, 4, 5}));
  expect_same(read(tensor(floats, 5, {1, 1}, {1000, 1000})),
              make_array<float>(DType::f32, {1, 1}, {5}));
  expect_same(read(tensor(floats, 6, {0, 7}, {7, 1})), make_array<float>(DType::f32, {0, 7}, {}));
  for (const auto& outside :
       {tensor(floats, 1, {2, 3}, {3, 1}), tensor(floats, 0, {2, 3}, {4, 1}),
        tensor(floats, -1, {2}, {1}), tensor(floats, 0, {2}, {-1}), tensor(floats, 6, {}, {}),
        tensor(floats, 7, {}, {}), tensor(floats, 0, {2}, {2'000'000'000}),
        tensor(floats, 0, {1'000'000}, {0})})
    expect_error([&] { read(outside); }, ErrorCode::bad_input, "outside of its storage");
}

// The other class of CVE-2026-24747: storages that declare more than the archive holds.
TEST(Pth, StorageSizesAreCheckedAgainstTheFile) {
  const TempFolder folder;
  const std::string large = dict({{"w", matrix(1'000'000'000)}});
  expect_error(
      [&] {
        read_pth(folder.file("x", zip_file(large, {{"0", kFloats}})));
      },
      ErrorCode::bad_input, "declares 4000000000 bytes, but the archive holds 24");
  expect_error([&] { read_pth(folder.file("x", zip_file(large, {}))); }, ErrorCode::bad_input,
               "storage 0 is not in the archive");
  const std::string legacy =
      legacy_file(large, {{"0", raw<std::int64_t>(1'000'000'000) + kFloats}});
  expect_error([&] { read_pth(folder.file("x", legacy)); }, ErrorCode::bad_input,
               "needs 4000000000 bytes");
  const std::string differs = legacy_file(large, {{"0", raw<std::int64_t>(6) + kFloats}});
  expect_error([&] { read_pth(folder.file("x", differs)); }, ErrorCode::bad_input, "declared size");
}

TEST(Pth, OneStorageIsNotMultipliedWithoutEnd) {
  const TempFolder folder;
  const std::string storage_bytes(100'000, 'x');
  std::vector<std::pair<std::string, std::string>> tensors;
  for (int i = 0; i < 40; ++i)
    tensors.emplace_back(std::to_string(i),
                         tensor(storage("ByteStorage", "0", 100'000), 0, {100'000}, {1}));
  const auto read = [&] {
    return read_pth(folder.file("x", zip_file(dict(tensors), {{"0", storage_bytes}})));
  };
  expect_error(read, ErrorCode::bad_input, "multiplies");
  tensors.resize(5);
  EXPECT_EQ(read().size(), 5u);
}

TEST(Pth, ACheckpointThatRunsSomethingIsRefused) {
  const TempFolder folder;
  const auto trace = folder / "ran";
  const std::string evil =
      dict({{"w", matrix()},
            {"x", global("posix", "system") + text("touch " + trace.string()) + "\x85R"}});
  expect_error(
      [&] {
        read_pth(folder.file("x", zip_file(evil, {{"0", kFloats}})));
      },
      ErrorCode::bad_input, "names posix.system");
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST(Pth, OtherFilesAreNamedForWhatTheyAre) {
  const TempFolder folder;
  expect_error(
      [&] {
        read_pth(folder.file("x", zip_file(state(), {}, {{"constants.pkl", ""}})));
      },
      ErrorCode::bad_input, "TorchScript");
  expect_error(
      [&] {
        read_pth(folder.file("x", zip_file(state(), {}, {{"byteorder", "big"}})));
      },
      ErrorCode::bad_input, "big-endian");
  expect_error([&] { read_pth(folder.file("x", legacy_file(state(), {}, false))); },
               ErrorCode::bad_input, "big-endian");
  expect_error([&] { read_pth(folder.file("x", std::string("\x80\x02K\1.") + "rest")); },
               ErrorCode::bad_input, "not a PyTorch checkpoint");
  expect_error([&] { read_pth(folder.file("x", "")); }, ErrorCode::bad_input, "empty");
  const auto zip = make_zip({{"a.npy", {}}});
  expect_error(
      [&] {
        read_pth(folder.file("x", {reinterpret_cast<const char*>(zip.data()), zip.size()}));
      },
      ErrorCode::bad_input, "data.pkl");
}

TEST(Pth, EveryCutIsAnError) {
  const TempFolder folder;
  const std::string zip = zip_file(state(), {{"0", kFloats}, {"1", kLongs}});
  const std::string legacy = legacy_file(
      state(), {{"0", raw<std::int64_t>(6) + kFloats}, {"1", raw<std::int64_t>(2) + kLongs}});
  expect_every_prefix_fails(folder, zip, read_pth);
  expect_every_prefix_fails(folder, legacy, read_pth);
  expect_survives_changed_bytes(folder, zip, read_pth);
  expect_survives_changed_bytes(folder, legacy, read_pth);
}

}  // namespace
}  // namespace zsq::formats::pth_test
