// SPDX-License-Identifier: Apache-2.0
// Recipes and efforts as a person names them.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zsq {
namespace {

TEST_F(Cli, RecipesAreListedShownAndExplained) {
  const Outcome list = run("recipes --all");
  EXPECT_NE(list.out.find("paper/ait_resnet18_w4a4"), std::string::npos);
  EXPECT_NE(list.out.find("66.83"), std::string::npos);
  const Outcome shown = run("recipes paper/ait_resnet50_w4a4 --set process.seed=9");
  EXPECT_NE(shown.out.find("superposed_share: 0.7"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("seed: 9"), std::string::npos);
  EXPECT_EQ(run("recipes " + write("again.yaml", shown.out)).out, shown.out);
  const std::string settings = run("recipes --settings").out;
  EXPECT_NE(settings.find("quantize.weights.num_bits: 4\n"), std::string::npos);
  // By section, in it those first that recipes change.
  const auto at = [&](const char* key) { return settings.find("\n" + std::string(key) + ": "); };
  EXPECT_EQ(settings.find("# images to measure with"), 0u);
  EXPECT_LT(at("data.preset"), at("quantize.mode"));
  EXPECT_LT(at("quantize.weights.rounding"), at("quantize.weights.per_channel"));
  EXPECT_LT(at("quantize.weights.per_channel"), at("finetune.iterations"));
  std::istringstream lines(settings);
  int sections = 0;
  for (std::string line; std::getline(lines, line);) sections += line.starts_with("# ");
  EXPECT_EQ(sections, 10);  // each once
}

TEST_F(Cli, RecipesOfUsersFitATerminal) {
  const std::string list = run("recipes").out;
  std::istringstream lines(list);
  int named = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 120u) << line;
    named += line.starts_with("  ");
  }
  EXPECT_EQ(named, 10);
  EXPECT_EQ(list.find("paper/"), std::string::npos) << list;
  EXPECT_NE(list.find("`zsq recipes --all`"), std::string::npos) << list;
}

TEST_F(Cli, OverlaysAndEffortsThatMakeNoSenseAreUsageErrors) {
  const std::string quantize = "quantize none.onnx -o " + path("out") + " ";
  expect_error(2, quantize + "--recipe instant+distill+tables",
               {"'tables' sets finetune.iterations to 0", "'distill' before it sets 800"});
  expect_error(2, quantize + "--recipe deploy+tables", {"'tables' ends the fine-tuning"});
  expect_error(2, quantize + "--effort minute --recipe instant", {"give only one of them"});
  expect_error(2, quantize + "--effort hour", {"--effort: 'hour' is not an effort", "half_hour"});
}

TEST_F(Cli, EffortIsRecordedAsTheRecipeItStandsFor) {
  const Outcome done =
      run("quantize " + tiny().model.string() + " --preset cifar10 --threads 1 " +
          "--effort minute --scheme W4A8 --set process.agreement_images=0 -o " + path("out"));
  ASSERT_EQ(done.code, 0) << done.err;
  const auto report = nlohmann::json::parse(text_of(folder_ / "out" / "report.json"));
  EXPECT_EQ(report["recipe"], "instant+gptq+tables+channel_correction");
  EXPECT_EQ(report["scheme"], "W4A8");
}

}  // namespace
}  // namespace zsq
