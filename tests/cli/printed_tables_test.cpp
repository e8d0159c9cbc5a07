// SPDX-License-Identifier: Apache-2.0
// What verbs print for a person holds the numbers that they give a program (--format json).
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zsq {
namespace {

using Json = nlohmann::json;

class PrintedTables : public Cli {
 protected:
  // A finished run, which the tests share.
  std::string finished() const {
    static const test::TempFolder folder;
    const std::string out = (folder / "out").string();
    if (!fs::exists(out)) quantize("--scheme W4A4", out);
    return out;
  }
  void quantize(const std::string& flags, const std::string& out) const {
    const Outcome outcome =
        run("quantize " + tiny().model.string() + " --recipe instant --preset cifar10 " + flags +
            " -o " + out + kShort);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  // That has the runtimes; empty if there is none.
  static std::string python() {
    const std::string program = ZSQ_SOURCE_DIR "/.deps/python/bin/python";
    return fs::exists(program) ? program : "";
  }

  std::string text(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --quiet");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  Json json(const std::string& arguments) const {
    return Json::parse(text(arguments + " --format json"));
  }
  static std::string rounded(const char* format, double value) {
    char words[64];
    std::snprintf(words, sizeof words, format, value);
    return words;
  }
  std::string data() const { return " --data " + tiny().images.string(); }
};

#define EXPECT_HOLDS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(PrintedTables, EvaluationOfAFileAndBesideTheFloatNetwork) {
  const std::string command = "eval " + finished() + data() + " --preset cifar10";
  const Json alone = json(command);
  EXPECT_HOLDS(text(command), rounded("top-1 %.2f %%", alone.at("top1")) +
                                  rounded("  top-5 %.2f %%", alone.at("top5")) + "  (" +
                                  alone.at("images").dump() + " images, ");
  const std::string beside = command + " --against " + tiny().model.string();
  const std::string words = text(beside);
  EXPECT_HOLDS(words, rounded("top-1 %.2f %%", alone.at("top1")));
  const Json compared = json(beside);
  EXPECT_HOLDS(words, rounded("\nagreement  %.1f %% with the teacher, KL ",
                              100 * compared.at("agreement").get<double>()) +
                          rounded("%.4f", compared.at("divergence")));
}

TEST_F(PrintedTables, SystemNoiseHasARowForEachChange) {
  const std::string command =
      "eval " + tiny().model.string() + data() + " --preset cifar10 --sysnoise all";
  const Json report = json(command);
  const std::string words = text(command);
  ASSERT_FALSE(report.at("options").empty());
  for (const Json& row : report.at("options")) {
    const std::string name =
        row.at("source").get<std::string>() + ": " + row.at("option").get<std::string>();
    const auto at = words.find("\n" + name);
    ASSERT_NE(at, std::string::npos) << name << "\n" << words;
    const std::string line = words.substr(at + 1, words.find('\n', at + 1) - at - 1);
    EXPECT_HOLDS(line, rounded("%6.2f", row.at("effect").at("top1")));
    EXPECT_HOLDS(line, rounded("%6.2f", row.at("effect").at("flips")));
  }
  for (const Json& line : report.at("skipped"))
    EXPECT_HOLDS(words, "\nskipped " + line.get<std::string>() + "\n");
  EXPECT_HOLDS(words, report.at("images").dump() + " images, ");
}

TEST_F(PrintedTables, ComparisonHasTheWorstLayerFirst) {
  const std::string command =
      "compare " + tiny().model.string() + " " + finished() + " --preset cifar10 -n 16";
  const Json report = json(command);
  const std::string words = text(command);
  std::size_t at = 0;
  for (const Json& layer : report.at("layers")) {
    const auto found = words.find("\n" + layer.at("name").get<std::string>() + " ", at);
    ASSERT_NE(found, std::string::npos) << layer.at("name") << " after " << at << "\n" << words;
    at = found;
  }
  EXPECT_HOLDS(words, rounded("the same class on %.2f %% of 16 dead-leaves images",
                              100 * report.at("agreement").get<double>()));
}

// Each runtime that is installed beside the sources, or the reason why none can be asked.
TEST_F(PrintedTables, ACheckNamesEachRuntime) {
  if (python().empty()) GTEST_SKIP() << "no Python with runtimes";
  const std::string command = "check " + finished() + " --images 8 --python " + python();
  const Json report = json(command + " --no_latency");
  const std::string words = text(command);
  ASSERT_FALSE(report.at("rows").empty());
  for (const Json& row : report.at("rows"))
    EXPECT_HOLDS(words,
                 row.at("runtime").get<std::string>() + " " + row.at("version").get<std::string>());
  for (const char* part : {"float ms", "int8 ms", "same class", "8 synthetic images", "threads"})
    EXPECT_HOLDS(words, part);
}

TEST_F(PrintedTables, ACheckWantsAProgram) {
  expect_error(2, "check " + finished() + " --python no_such_python",
               {"--python: 'no_such_python' is no program"});
}

// For a runtime with a format of its own the float network is written in it, to be timed.
TEST_F(PrintedTables, ACheckTimesTheFloatNetworkInEachRuntime) {
  if (python().empty()) GTEST_SKIP() << "no Python with runtimes";
  for (const char* target : {"tflite", "ncnn"}) {
    quantize(std::string("--set quantize.target=") + target, path(target));
    ASSERT_EQ(run("export " + path(target) + " --target " + target).code, 0) << target;
    const std::string own = std::string(target) == "tflite" ? "litert" : "ncnn";
    bool timed = false;
    const Outcome checked =
        run("check " + path(target) + " --images 4 --format json --quiet --python " + python());
    const Json report = Json::parse(checked.out);
    for (const Json& row : report.at("rows"))
      timed |= row.at("runtime") == own && row.at("float_ms").is_number();
    EXPECT_TRUE(timed) << checked.out << checked.err;
  }
}

TEST_F(PrintedTables, ATerminalGetsABar) {
  if (std::system("command -v script > /dev/null") != 0) GTEST_SKIP() << "no terminal to emulate";
  const std::string line = "script -qec '" ZSQ_BINARY " eval " + tiny().model.string() + data() +
                           " --preset cifar10' /dev/null < /dev/null > " + path("terminal");
  ASSERT_EQ(std::system(line.c_str()), 0);
  EXPECT_HOLDS(text_of(path("terminal")), "[" + std::string(24, '#') + "]");
}

TEST_F(PrintedTables, AMemoryLimitReachesTheProcess) {
  expect_error(5,
               "quantize " + tiny().model.string() + " --recipe instant --preset cifar10 -o " +
                   path("small") + " --memory_limit 200MB",
               {"--memory_limit is 200 MB", "would do"});
  quantize("--memory_limit 1GB", path("fits"));
}

}  // namespace
}  // namespace zsq
