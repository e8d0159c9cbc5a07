// SPDX-License-Identifier: Apache-2.0
// Covers also pipeline/children, pipeline/reproduce, pipeline/reproduce_table.
// A table of runs from start to end: listed, stopped by a fault, gone on with, complete.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zsq {
namespace {

class Reproduce : public Cli {
 protected:
  void SetUp() override {
    setenv("ZSQ_CACHE", path("cache").c_str(), 1);
    fs::create_directory(folder_ / "rows");
    write("rows/1_plain.yaml",
          "about: no training\nextends: ablation/01_min_max\ngenerate: {images: {steps: 5}}\n");
    write("rows/2_loop.yaml",
          "about: training\nextends: ablation/11_image_bank\nfinetune: {batch_size: 16, warmup: "
          "0.5}\nquantize: {activations: {calibration_images: 64}}\n"
          "generate: {images: {steps: 5}}\nprocess: {agreement_images: 64}\n");
  }
  void TearDown() override { unsetenv("ZSQ_CACHE"); }

  std::string command(const std::string& more = "") const {
    return "reproduce " + path("rows") + " --model " + tiny().model.string() + " -o " +
           path("out") + " --seeds 0,1 --iterations 12 --jobs 2 --bank_images 8 --threads 1" +
           " --preset cifar10 --eval_data " + tiny().images.string() + " " + more;
  }
  static nlohmann::json json(const std::string& text) { return nlohmann::json::parse(text); }
  static fs::file_time_type written(const fs::path& cell) {
    return fs::last_write_time(cell / "report.json");
  }
};

TEST_F(Reproduce, ATableIsRunOnUntilItIsWhole) {
  const Outcome listed = run(command("--list"));
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_NE(listed.out.find("2_loop"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("missing"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "out"));

  const Outcome one = run(command("--cell 1 --format json"));
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(json(one.out)["cells"][1]["finished"], true);
  EXPECT_EQ(json(one.out)["cells"][0]["finished"], false);
  const fs::path cell = folder_ / "out" / "1_plain" / "seed1";
  const auto kept = written(cell);

  const Outcome whole = run(command("--format json"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(written(cell), kept);  // finished cells are not run again
  const auto table = json(whole.out);
  ASSERT_EQ(table["cells"].size(), 4u);
  for (const auto& c : table["cells"]) {
    EXPECT_EQ(c["finished"], true) << c;
    EXPECT_TRUE(c["top1"].is_number()) << c;
    EXPECT_GT(c["neutral_divergence"], 0) << c;
    EXPECT_EQ(c["iterations"], c["row"] == "2_loop" ? 12 : 0);
  }
  ASSERT_EQ(table["rows"].size(), 2u);
  const auto& cells = table["cells"];
  const auto& loop = table["rows"][1];
  const double a = cells[2]["top1"], b = cells[3]["top1"];
  EXPECT_NEAR(loop["mean_top1"].get<double>(), (a + b) / 2, 1e-9);
  EXPECT_EQ(loop["worst_top1"].get<double>(), std::min(a, b));
  EXPECT_TRUE(fs::exists(folder_ / "out" / "bank.safetensors"));
  EXPECT_EQ(json(text_of(folder_ / "out" / "table.json")), table);
  const std::string text = text_of(folder_ / "out" / "table.md");
  EXPECT_NE(text.find("| 2_loop | training | 0, 1 |"), std::string::npos) << text;

  // The command of a cell is all there is to it.
  const std::string again = cells[2]["command"].get<std::string>().substr(4);
  const std::string model = "/model.safetensors";
  const std::string folder = cells[2]["folder"], before = text_of(folder + model);
  fs::remove(folder + model);
  ASSERT_EQ(run(again).code, 0);
  EXPECT_EQ(text_of(folder + model), before);

  // Another setting is another cell.
  const auto changed = json(run(command("--list --format json --set finetune.lr=0.002")).out);
  for (const auto& c : changed["cells"]) EXPECT_EQ(c["finished"], false);
}

TEST_F(Reproduce, AFailedCellIsNamedAndTheOthersFinish) {
  write("rows/0_bad.yaml",
        "about: fails\nextends: ablation/01_min_max\n"
        "quantize: {weights: {layer_bits: [\"none=4\"]}}\n");
  const Outcome outcome = run(command("--rows 0,1"));
  EXPECT_NE(outcome.code, 0);
  EXPECT_EQ(run("reproduce " + path("rows") + " --model x -o " + path("out")).code, 2);
  EXPECT_NE(outcome.err.find("log.txt"), std::string::npos) << outcome.err;
  EXPECT_NE(text_of(folder_ / "out" / "0_bad" / "seed0" / "log.txt").find("'none'"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "out" / "1_plain" / "seed0" / "report.json"));
  EXPECT_TRUE(fs::exists(folder_ / "out" / "table.md"));
}

TEST_F(Reproduce, WrongFlagsAreNamed) {
  const std::string model = " --model " + tiny().model.string() + " -o " + path("out");
  expect_error(2, "reproduce ablatoin" + model, {"ablatoin", "ablation"});
  expect_error(2, "reproduce ablation -o x", {"--model"});
  expect_error(2, "reproduce ablation" + model + " --seeds 0,x", {"--seeds", "'x'"});
  expect_error(2, command("--cell 9"), {"no cell 9", "0 to 3"});
  expect_error(2, command("--rows none"), {"no row"});
  const Outcome builtin = run("reproduce ablation --list" + model);
  EXPECT_NE(builtin.out.find("11_image_bank"), std::string::npos) << builtin.out << builtin.err;
}

}  // namespace
}  // namespace zsq
