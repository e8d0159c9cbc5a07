// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.h"

#include <gtest/gtest.h>

#include "tests/formats/pickle_bytes.h"

namespace zsq::formats::pickle_test {
namespace {

using Kind = PickleValue::Kind;
using namespace pickled;

struct Parsed {
  std::string bytes;
  PickleReader reader;
  const PickleValue* value;

  explicit Parsed(std::string pickle)
      : bytes(std::move(pickle)), reader(std::as_bytes(std::span(bytes))), value(reader.next()) {}
};

void refuse(const std::string& pickle, const char* part) {
  SCOPED_TRACE(testing::PrintToString(pickle.substr(0, 100)));
  expect_error([&] { Parsed parsed(pickle); }, ErrorCode::bad_input, part);
}

TEST(Pickle, Literals) {
  EXPECT_TRUE(Parsed("N.").value->is(Kind::none));
  EXPECT_EQ(Parsed("\x88.").value->integer, 1);
  EXPECT_EQ(Parsed("\x89.").value->integer, 0);
  EXPECT_EQ(Parsed("J\xff\xff\xff\xff.").value->integer, -1);
  EXPECT_EQ(Parsed("K\xff.").value->integer, 255);
  EXPECT_EQ(Parsed("M\xff\xff.").value->integer, 65535);
  EXPECT_TRUE(Parsed(std::string("G\0\0\0\0\0\0\0\0.", 10)).value->is(Kind::real));
  EXPECT_EQ(Parsed(std::string("\x8a\0.", 3)).value->integer, 0);
  EXPECT_EQ(Parsed("\x8a\x01\xfe.").value->integer, -2);
  EXPECT_EQ(Parsed(std::string("\x8a\x05\0\0\0\0\x01.", 8)).value->integer, 1LL << 32);
  EXPECT_EQ(Parsed("\x8a\x09zzzzzzzz\x01.").value->text, "zzzzzzzz\x01");
  EXPECT_EQ(Parsed("\x8c\x02hi.").value->text, "hi");
  EXPECT_EQ(Parsed(text("there") + ".").value->text, "there");
}

TEST(Pickle, ContainersAndMemo) {
  // {"a": [1, 2, (3,)], "b": the same list}, then "a" again: the last one counts.
  const Parsed parsed("}(" + text("a") + "](K\1K\2K\3\x85" + "eq\5" + text("b") + "h\5u" +
                      text("a") + "K\7s.");
  ASSERT_TRUE(parsed.value->is(Kind::dict));
  EXPECT_EQ(parsed.value->get("a")->integer, 7);
  const PickleValue* list = parsed.value->get("b");
  ASSERT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->items[2]->items[0]->integer, 3);
  EXPECT_FALSE(parsed.value->get("c"));
}

TEST(Pickle, FourthProtocol) {
  const Parsed parsed("\x80\x04\x95" + raw<std::uint64_t>(1) + "}\x94\x8c\x01k\x94\x8c\x06" +
                      "module\x8c\x04name\x93\x94s.");
  EXPECT_EQ(parsed.value->get("k")->text, "module.name");
}

TEST(Pickle, ListThatHoldsItself) {
  const Parsed parsed("]q\1h\1a.");
  EXPECT_EQ(parsed.value->items[0], parsed.value);
}

TEST(Pickle, HarmlessObjectsAreOpaque) {
  const std::string empty = ")";
  for (const std::string& harmless :
       {global("argparse", "Namespace") + ")\x81" + dict({{"lr", "K\1"}}) + "b",
        global("numpy._core.multiarray", "scalar") + global("numpy", "dtype") + text("f8") +
            "\x85R" + global("_codecs", "encode") + text("x") + text("latin1") + "\x86R\x86R",
        global("__main__", "Net") + ")\x81" + dict({}) + "b",
        global("__builtin__", "set") + "]\x85R", global("builtins", "slice") + "K\1K\2N\x87R",
        global("collections", "defaultdict") + global("builtins", "list") + "\x85R" + text("k") +
            "Ns",
        global("collections", "deque") + ")RK\1a", global("functools", "partial") + ")R"}) {
    EXPECT_TRUE(Parsed(harmless + ".").value->is(Kind::opaque)) << harmless;
  }
  EXPECT_EQ(Parsed(global("argparse", "Namespace") + ")\x81" + dict({{"lr", "K\1"}}) + "b.")
                .value->state->get("lr")
                ->integer,
            1);
}

// The class of CVE-2025-32434: a checkpoint that runs something when it is read.
TEST(Pickle, WhatWouldRunSomethingIsRefusedByName) {
  const std::string argument = text("touch /tmp/zsq-was-here") + "\x85";
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"os", "system"},
                                                        {"posix", "system"},
                                                        {"nt", "system"},
                                                        {"builtins", "eval"},
                                                        {"__builtin__", "exec"},
                                                        {"builtins", "getattr"},
                                                        {"subprocess", "Popen"},
                                                        {"runpy", "_run_code"},
                                                        {"importlib", "import_module"},
                                                        {"socket", "socket"},
                                                        {"sys", "exit"},
                                                        {"shutil", "rmtree"},
                                                        {"ctypes", "CDLL"},
                                                        {"builtins", "open"},
                                                        {"os.path", "join"}}) {
    const std::string wanted = "names " + module + "." + name;
    refuse(global(module, name) + argument + "R.", wanted.c_str());
    refuse(global(module, name) + argument + "\x81.", wanted.c_str());
    refuse("\x80\x04" + text(module) + text(name) + "\x93" + argument + "R.", wanted.c_str());
  }
}

TEST(Pickle, ANameThatIsNotCalledIsHarmless) {
  EXPECT_TRUE(Parsed(global("os", "getcwd") + ".").value->is(Kind::global));
}

// The class of CVE-2026-24747: an opcode applied to the wrong kind of container.
TEST(Pickle, WrongContainersAreRefused) {
  const std::string tensor_bytes = tensor(storage("FloatStorage", "0", 1), 0, {1}, {1});
  for (const std::string& target :
       std::vector<std::string>{"]", "K\1", ")", "N", text("t"), global("a", "b"),
                                storage("FloatStorage", "0", 1), tensor_bytes})
    refuse(target + text("k") + "K\1s.", "not a dictionary");
  for (const std::string& target :
       std::vector<std::string>{"}", "K\1", ")", text("t"), global("a", "b"),
                                storage("FloatStorage", "0", 1), tensor_bytes}) {
    refuse(target + "K\1a.", "not a list");
    refuse(target + "(K\1e.", "not a list");
  }
  refuse("](" + text("k") + "K\1u.", "not a dictionary");
  refuse("}(" + text("k") + "u.", "without a value");
  refuse("}]K\1s.", "as a key");
  refuse("]}b.", "not an object");
  refuse(global("a", "b") + "]R.", "not a tuple");
  refuse("K\1)R.", "no name");
  refuse("]Q.", "persistent id");
  refuse("K\1K\2\x93.", "not text");
}

TEST(Pickle, BrokenStacksAreRefused) {
  refuse(".", "empty stack");
  refuse("K\1K\2.", "leaves values");
  refuse("(.", "empty stack");
  refuse("t.", "mark");
  refuse("]e.", "mark");
  refuse("](a.", "empty stack");  // never below a mark
  refuse("h\1.", "never stored");
  refuse("q\1.", "empty stack");
  refuse("\x85.", "empty stack");
  refuse("cno newline", "inside a name");
  refuse("X\xff\xff\xff\x7fx.", "too early");
  refuse("\x80\x06N.", "protocol");
  refuse("\x95" + raw<std::uint64_t>(1000) + "N.", "frame");
  refuse("i.", "opcode 105");
  refuse("", "too early");
}

TEST(Pickle, LimitsHold) {
  refuse(std::string(2'000, '('), "too deeply");
  refuse(std::string(1'000'001, 'N'), "stack");
  refuse("N" + std::string(2'000'001, '\x85') + ".", "too many values");  // nested tuples
  refuse(global(std::string(2'000, 'a'), "b") + ".", "too long");
  // A short pickle that asks for the copies of one long list again and again.
  std::string list = "](" + std::string(900'000, 'N') + "eq\1";
  for (int i = 0; i < 10; ++i) list += global("collections", "OrderedDict") + "h\1\x85R";
  refuse(list, "pairs");
  std::string pairs = "](";
  for (int i = 0; i < 400'000; ++i) pairs += "NN\x86";
  pairs += "eq\1";
  for (int i = 0; i < 30; ++i) pairs += global("collections", "OrderedDict") + "h\1\x85R";
  refuse(pairs, "repeats its values too often");
}

TEST(Pickle, TensorsAreChecked) {
  const std::string good = storage("FloatStorage", "0", 4);
  EXPECT_TRUE(Parsed(tensor(good, 0, {4}, {1}) + ".").value->is(Kind::tensor));
  EXPECT_TRUE(Parsed(global("torch._utils", "_rebuild_parameter") + tensor(good, 0, {4}, {1}) +
                     "\x88)\x87R.")
                  .value->is(Kind::tensor));
  refuse(tensor("N", 0, {4}, {1}) + ".", "wrong kinds");
  refuse(tensor(good, 0, {4, 1}, {1}) + ".", "wrong kinds");
  refuse(global("torch._utils", "_rebuild_tensor") + ")R.", "wrong kinds");
  refuse(global("torch._utils", "_rebuild_parameter") + "K\1\x85R.", "not a tensor");
  refuse(storage("ComplexFloatStorage", "0", 4) + ".", "ComplexFloatStorage");
  refuse(storage("FloatStorage", "0", -4) + ".", "storage");
  refuse(storage("FloatStorage", "0", 4) + storage("HalfStorage", "0", 4) + "\x86.",
         "two element types");
}

}  // namespace
}  // namespace zsq::formats::pickle_test
