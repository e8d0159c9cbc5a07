// SPDX-License-Identifier: Apache-2.0
// Finished runs as a page, in a browser and in TensorBoard, and several side by side.
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zsq {
namespace {

using Json = nlohmann::json;

class Report : public Cli {
 protected:
  void quantize(const std::string& name, const std::string& flags) const {
    const Outcome outcome = run("quantize " + tiny().model.string() + " --preset cifar10 -o " +
                                path(name) + kShort + " " + flags);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void train(const std::string& name) const {
    quantize(name, "--recipe deploy --eval_data " + tiny().images.string());
  }
  Json json_of(const std::string& name) const {
    return Json::parse(text_of(folder_ / name / "report.json"));
  }
  std::vector<Json> history_of(const std::string& name) const {
    std::ifstream file(folder_ / name / "history.jsonl");
    std::vector<Json> records;
    for (std::string line; std::getline(file, line);) records.push_back(Json::parse(line));
    return records;
  }
  static std::string script(const char* name) {
    return std::string(ZSQ_SOURCE_DIR) + "/tests/cli/" + name;
  }
};

TEST_F(Report, APageIsWrittenAgainAsTheRunWroteIt) {
  train("out");
  const std::string page = text_of(folder_ / "out/report.html");
  EXPECT_LT(page.size(), 500'000u);
  for (const char* title : {"Size, latency and accuracy", "Generated images", "Curves", "Layers",
                            "Sensitivity", "Settings", "data:image/png;base64,"})
    EXPECT_NE(page.find(title), std::string::npos) << title;
  fs::remove(folder_ / "out/report.html");
  const Outcome outcome = run("report " + path("out"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("report.html"), std::string::npos);
  EXPECT_EQ(text_of(folder_ / "out/report.html"), page);
  run("report " + path("out") + " -o " + path("copy.html"));
  EXPECT_EQ(text_of(folder_ / "copy.html"), page);
}

TEST_F(Report, RunsStandSideBySide) {
  train("a");
  quantize("b", "--recipe instant --seed 3");
  const std::string both = "report " + path("a") + " " + path("b");
  const Outcome outcome = run(both + " --format json -o " + path("both.html"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = Json::parse(outcome.out);
  ASSERT_EQ(json["runs"].size(), 2u);
  for (const int i : {0, 1}) {
    const Json expected = json_of(i == 0 ? "a" : "b"), &run = json["runs"][i];
    for (const char* key : {"scheme", "recipe", "seed", "teacher", "student", "agreement",
                            "divergence", "size", "seconds"})
      EXPECT_EQ(run[key], expected[key]) << key;
    ASSERT_EQ(run["layers"].size(), expected["layers"].size());
    for (std::size_t l = 0; l < run["layers"].size(); ++l)
      EXPECT_EQ(run["layers"][l]["output_sqnr"], expected["layers"][l]["output_sqnr"]);
  }
  EXPECT_EQ(json["settings"]["process.seed"], Json({"0", "3"}));
  EXPECT_EQ(json["settings"]["quantize.weights.num_bits"], Json({"4", "8"}));
  EXPECT_FALSE(json["settings"].contains("process.threads"));
  const std::string page = text_of(folder_ / "both.html"), table = run(both).out;
  EXPECT_NE(page.find("is nearest to its float network"), std::string::npos);
  for (const char* text : {"W4A4", "W8A8", "instant", "process.seed"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
    EXPECT_NE(table.find(text), std::string::npos) << table;
  }
}

TEST_F(Report, RefusesWhatIsNoRun) {
  fs::create_directories(folder_ / "old");
  write("old/report.json", R"({"tool_version":"0.0.1","scheme":"W4A4"})");
  fs::create_directories(folder_ / "empty");
  expect_error(2, "report", {"FOLDER is missing"});
  expect_error(2, "report " + path("nowhere"), {"nowhere", "report.json"});
  expect_error(2, "report " + path("empty"), {"empty", "report.json"});
  expect_error(2, "report " + path("old"), {"old/report.json", "version 0.0.1 wrote it"});
  write("old/report.json", "no json");
  expect_error(2, "report " + path("old"), {"old/report.json", "is not the report"});
}

TEST_F(Report, PagesWorkInABrowser) {
  train("a");
  quantize("b",
           "--recipe instant --target_size 30% --set mixed.images=8"
           " --set generate.images.steps=5");
  ASSERT_EQ(run("report " + path("a") + " " + path("b") + " -o " + path("both.html")).code, 0);
  const Outcome outcome = run(script("page_in_browser.py") + " " + path("a/report.html") + " " +
                                  path("b/report.html") + " " + path("both.html"),
                              "python3 -B");
  if (outcome.code == 77) GTEST_SKIP() << outcome.out;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// As its own package reads them, events are what the history says.
TEST_F(Report, TensorBoardReadsTheEvents) {
  train("out");
  const std::string python = std::string(ZSQ_SOURCE_DIR) + "/.deps/python/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "needs " << python;
  const Outcome outcome =
      run(script("read_events.py") + " " + path("out"), (python + " -B").c_str());
  if (outcome.code == 77) GTEST_SKIP() << outcome.out;
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json found = Json::parse(outcome.out);
  std::map<std::string, Json> expected;
  int images = 0;
  for (const Json& record : history_of("out")) {
    images += static_cast<int>(record.contains("image"));
    if (record.contains("metrics"))
      for (const auto& [name, value] : record["metrics"].items())
        expected[record["phase"].get<std::string>() + "/" + name].push_back(
            {record["step"], static_cast<double>(value.get<float>())});
  }
  EXPECT_GE(expected.size(), 6u);
  EXPECT_EQ(found["scalars"], Json(expected));
  EXPECT_GE(images, 6);
  EXPECT_EQ(found["images"].size(), static_cast<std::size_t>(images));
}

}  // namespace
}  // namespace zsq
