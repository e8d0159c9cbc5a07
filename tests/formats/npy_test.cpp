// SPDX-License-Identifier: Apache-2.0
#include "formats/npy.h"

#include <gtest/gtest.h>

#include "tests/formats/helpers.h"

namespace zsq::formats {
namespace {

std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  const auto length = static_cast<std::uint32_t>(dictionary.size());
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' +
         raw(length).substr(0, version == 1 ? 2 : 4) + dictionary + data;
}

// What numpy.save(numpy.array([[1, -2, 3], [4, 5, 6]], '<i2')) writes.
std::string saved_by_numpy() {
  std::string dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
  dictionary.resize(117, ' ');
  return npy(dictionary + '\n', std::string("\1\0\xfe\xff\3\0\4\0\5\0\6\0", 12));
}

Array same_in_memory() { return make_array<std::int16_t>(DType::i16, {2, 3}, {1, -2, 3, 4, 5, 6}); }

TEST(Npy, ReadsAndWritesNumPysBytes) {
  const TempFolder folder;
  expect_same(read_npy(folder.file("x", saved_by_numpy())), same_in_memory());
  write_npy(folder / "y", same_in_memory());
  EXPECT_EQ(read_text(folder / "y"), saved_by_numpy());
}

TEST(Npy, PieceByPieceGivesTheSameBytes) {
  const TempFolder folder;
  const auto array = same_in_memory();
  const auto data = std::span(array.data);
  {
    NpyWriter writer(folder / "z", DType::i16, {2, 3});
    writer.write(data.first(7));
    expect_error([&] { writer.commit(); }, ErrorCode::internal, "5 bytes");
    expect_error([&] { writer.write(data); }, ErrorCode::internal, "more bytes");
    EXPECT_FALSE(std::filesystem::exists(folder / "z"));
    writer.write(data.subspan(7));
    writer.commit();
  }
  EXPECT_EQ(read_text(folder / "z"), saved_by_numpy());
}

TEST(Npy, ReadsBothVersionsAndOtherSpellings) {
  const TempFolder folder;
  const std::string data = raw(1.0f) + raw(2.0f);
  const Array wanted = make_array<float>(DType::f32, {2}, {1, 2});
  for (const int version : {1, 2})
    for (const char* dictionary : {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                                   "{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":True}  \n"})
      expect_same(read_npy(folder.file("x", npy(dictionary, data, version))), wanted);
}

TEST(Npy, RoundTripOfEveryElementType) {
  const TempFolder folder;
  for (const auto& [name, array] : every_dtype()) {
    SCOPED_TRACE(name);
    if (array.dtype == DType::bf16) {
      expect_error([&] { write_npy(folder / "x", array); }, ErrorCode::usage, "bf16");
      continue;
    }
    write_npy(folder / "x", array);
    expect_same(read_npy(folder / "x"), array);
    EXPECT_EQ((read_text(folder / "x").size() - array.data.size()) % 64, 0u);
  }
}

TEST(Npy, WrongFilesAreRefused) {
  const TempFolder folder;
  const auto refuse = [&](const std::string& bytes, const char* part) {
    expect_error([&] { read_npy(folder.file("x", bytes)); }, ErrorCode::bad_input, part);
  };
  const std::string four = "1234";
  refuse(npy("{'descr': '>f4', 'fortran_order': False, 'shape': ()}", four), "'>f4'");
  refuse(npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}", four), "'|O'");
  refuse(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", four), "header");
  refuse(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}", four), "Fortran");
  refuse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}", four), "asks for 3");
  refuse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-4,)}", four), "negative");
  refuse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}", four),
         "asks for 1099511627776");
  refuse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)", four), "header");
  refuse(npy("{'descr': '|u1', 'shape': (4,)}", four), "header");
  refuse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}", four, 3), "version 3");
  refuse("PK not an npy file", "not an npy file");
}

TEST(Npy, EveryCutIsAnError) {
  const TempFolder folder;
  expect_every_prefix_fails(folder, saved_by_numpy(), read_npy);
  expect_survives_changed_bytes(folder, saved_by_numpy(), read_npy);
}

TEST(Npz, RoundTripIsExactAndDeterministic) {
  const TempFolder folder;
  NamedArrays arrays = every_dtype();
  std::erase_if(arrays, [](const auto& entry) { return entry.second.dtype == DType::bf16; });
  write_npz(folder / "x", arrays);
  write_npz(folder / "y", arrays);
  EXPECT_EQ(read_text(folder / "x"), read_text(folder / "y"));
  expect_same(read_npz(folder / "x"), arrays);
}

TEST(Npz, EveryCutIsAnError) {
  const TempFolder folder;
  write_npz(folder / "x", {{"a", same_in_memory()}, {"b", same_in_memory()}});
  const std::string bytes = read_text(folder / "x");
  expect_every_prefix_fails(folder, bytes, read_npz);
  expect_survives_changed_bytes(folder, bytes, read_npz);
}

// numpy.savez_compressed(a=numpy.full(100, 1.5, 'f4'), b=numpy.arange(3)).
TEST(Npz, ReadsDeflatedEntries) {
  const std::string hex =
      "504b03042d000000080000002100c36e6d42ffffffffffffffff05001400612e6e70790100100010020000000000"
      "004e000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f"
      "5f94920a12774bcc294e058a17672416a402f91a8606063a9a3a0ab50a64032e068603f6a378f06000504b03042d"
      "000000080000002100f74012eaffffffffffffffff05001400622e6e7079010010009800000000000000"
      "4c000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f5f"
      "94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab50a14002e06286084d24c501a00504b01022d032d00"
      "0000080000002100c36e6d424e00000010020000050000000000000000000000800100000000612e6e7079504b01"
      "022d032d000000080000002100f74012ea4c00000098000000050000000000000000000000800185000000622e6e"
      "7079504b0506000000000200020066000000080100000000";
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  const TempFolder folder;
  expect_same(read_npz(folder.file("x", bytes)),
              {{"a", make_array(DType::f32, {100}, std::vector<float>(100, 1.5f))},
               {"b", make_array<std::int64_t>(DType::i64, {3}, {0, 1, 2})}});
  expect_every_prefix_fails(folder, bytes, read_npz);
}

}  // namespace
}  // namespace zsq::formats
