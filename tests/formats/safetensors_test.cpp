// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include "tests/formats/helpers.h"

namespace zsq::formats {
namespace {

std::string file_bytes(const std::string& header, const std::string& data) {
  return raw<std::uint64_t>(header.size()) + header + data;
}

TEST(Safetensors, ReadsHandWrittenBytes) {
  const TempFolder folder;
  // Header order and data order differ; file order is the order of the data.
  const auto path =
      folder.file("x", file_bytes(R"({"b":{"dtype":"I8","shape":[3],"data_offsets":[4,7]},)"
                                  R"("__metadata__":{"k":"v"},)"
                                  R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                                  raw(1.5f) + "\x01\xfe\x03"));
  const SafetensorsFile file = read_safetensors(path);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"k", "v"}}));
  expect_same(file.tensors, {{"a", make_array<float>(DType::f32, {}, {1.5f})},
                             {"b", make_array<std::int8_t>(DType::i8, {3}, {1, -2, 3})}});
}

TEST(Safetensors, RoundTripIsExactAndDeterministic) {
  const TempFolder folder;
  const SafetensorsFile file = {every_dtype(), {{"z", "1"}, {"a", "\"quoted\" \xc3\xa9"}}};
  write_safetensors(folder / "x", file);
  write_safetensors(folder / "y", file);
  EXPECT_EQ(read_text(folder / "x"), read_text(folder / "y"));
  const SafetensorsFile back = read_safetensors(folder / "x");
  EXPECT_EQ(back.metadata, file.metadata);
  EXPECT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& [name, array] : file.tensors) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(find(back.tensors, name));
    expect_same(*find(back.tensors, name), array);
  }
}

TEST(Safetensors, ReadsParts) {
  const TempFolder folder;
  write_safetensors(folder / "x", {{{"wide", make_array<std::int64_t>(DType::i64, {1}, {7})},
                                    {"bytes", make_array<std::uint8_t>(DType::u8, {3}, {1, 2, 3})}},
                                   {{"k", "v"}}});
  const SafetensorsReader reader(folder / "x");
  EXPECT_EQ(reader.metadata().at("k"), "v");
  const auto& entry = reader.entries().at(1);
  EXPECT_EQ(entry.name, "bytes");
  EXPECT_EQ(reader.read(entry, 1, 2), (std::vector{std::byte{2}, std::byte{3}}));
  for (const std::uint64_t offset : {2, 4})
    expect_error([&] { reader.read(entry, offset, 2); }, ErrorCode::internal, "'bytes'");
}

TEST(Safetensors, PieceByPieceGivesTheSameBytes) {
  const TempFolder folder;
  const auto wide = make_array<std::int64_t>(DType::i64, {2}, {1, -2});
  const auto narrow = make_array<float>(DType::f32, {3}, {1, 2, 3});
  write_safetensors(folder / "x", {{{"wide", wide}, {"narrow", narrow}}, {{"k", "v"}}});
  const auto piecewise = [&](std::size_t bytes_of_narrow) {
    SafetensorsWriter writer(folder / "y", {{"wide", DType::i64, {2}}, {"narrow", DType::f32, {3}}},
                             {{"k", "v"}});
    const std::vector<std::byte> more(16);
    const auto data = std::span(narrow.data);
    writer.write(wide.data);
    writer.write(data.first(5));
    writer.write(bytes_of_narrow > 12 ? std::span(more) : data.subspan(5, bytes_of_narrow - 5));
    writer.commit();
  };
  expect_error([&] { piecewise(11); }, ErrorCode::internal, "1 bytes");
  expect_error([&] { piecewise(13); }, ErrorCode::internal, "more bytes");
  EXPECT_FALSE(std::filesystem::exists(folder / "y"));
  piecewise(12);
  EXPECT_EQ(read_text(folder / "x"), read_text(folder / "y"));
}

TEST(Safetensors, WritesExactlyTheseBytes) {
  const TempFolder folder;
  write_safetensors(folder / "x", {{{"q", make_array<std::uint8_t>(DType::u8, {1}, {7})},
                                    {"s", make_array<float>(DType::f32, {1}, {2.0f})}},
                                   {{"k", "v"}}});
  // The larger elements come first, so that they stay aligned.
  EXPECT_EQ(read_text(folder / "x"),
            file_bytes(R"({"__metadata__":{"k":"v"},)"
                       R"("s":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("q":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}     )",
                       raw(2.0f) + "\x07"));
}

TEST(Safetensors, ElementsOfFourBitsAreRefused) {
  const TempFolder folder;
  const std::uint8_t values[] = {1, 2};
  expect_error(
      [&] {
        write_safetensors(folder / "x", {{{"q", pack_u4({2}, values)}}, {}});
      },
      ErrorCode::usage, "u4");
}

TEST(Safetensors, EveryCutIsAnError) {
  const TempFolder folder;
  write_safetensors(folder / "x", {every_dtype(), {}});
  const std::string bytes = read_text(folder / "x");
  expect_every_prefix_fails(folder, bytes, read_safetensors);
  expect_error([&] { read_safetensors(folder.file("y", bytes + "!")); }, ErrorCode::bad_input,
               "bytes of data");
}

TEST(Safetensors, SurvivesChangedBytes) {
  const TempFolder folder;
  write_safetensors(folder / "x", {{{"w", make_array<float>(DType::f32, {2}, {1, 2})}}, {}});
  expect_survives_changed_bytes(folder, read_text(folder / "x"), read_safetensors);
}

TEST(Safetensors, WrongHeadersAreRefused) {
  const TempFolder folder;
  const auto refuse = [&](const std::string& header, const std::string& data, const char* part) {
    SCOPED_TRACE(header);
    expect_error([&] { read_safetensors(folder.file("x", file_bytes(header, data))); },
                 ErrorCode::bad_input, part);
  };
  refuse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234", "do not fit");
  refuse(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234", "negative");
  refuse(R"({"a":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,4]}})", "1234",
         "overflows");
  refuse(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "1234", "do not fit");
  refuse(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", "1234", "gap or overlaps");
  refuse(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
         R"("b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
         "1234", "gap or overlaps");
  // One gigabyte of data described by a file of a few bytes.
  refuse(R"({"a":{"dtype":"U8","shape":[1073741824],"data_offsets":[0,1073741824]}})", "1234",
         "describes 1073741824");
  refuse(R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,4]}})", "1234", "C64");
  refuse(R"({"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", "1234",
         "shape is [4.0]; integers");
  refuse(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,1e58]}})", "1234",
         "data_offsets is [0,1e+58]; integers");
  refuse(R"({"a":5})", "", "damaged");
  refuse(R"([])", "", "not a JSON object");
  refuse(std::string(100'000, '['), "", "nested deeper");
  expect_error([&] { read_safetensors(folder.file("x", raw<std::uint64_t>(~0ULL) + "{}")); },
               ErrorCode::bad_input, "header would be 18446744073709551615");
}

TEST(Safetensors, NamesAreUniqueAndUtf8) {
  const TempFolder folder;
  const Array one = make_array<std::uint8_t>(DType::u8, {1}, {1});
  expect_error(
      [&] {
        write_safetensors(folder / "x", {{{"a", one}, {"a", one}}, {}});
      },
      ErrorCode::usage, "'a'");
  expect_error(
      [&] {
        write_safetensors(folder / "x", {{{"\xff", one}}, {}});
      },
      ErrorCode::usage, "UTF-8");
}

}  // namespace
}  // namespace zsq::formats
