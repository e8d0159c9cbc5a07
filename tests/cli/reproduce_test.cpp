// SPDX-License-Identifier: Apache-2.0
// A table of runs from start to end: listed, stopped by a fault, gone on with, complete.
#include <signal.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "formats/atomic_file.h"
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

  std::string command(const std::string& more = "", int iterations = 12) const {
    return "reproduce " + path("rows") + " --model " + tiny().model.string() + " -o " +
           path("out") + " --seeds 0,1 --jobs 2 --bank_images 8 --threads 1 --iterations " +
           std::to_string(iterations) + " --preset cifar10 --eval_data " + tiny().images.string() +
           " " + more;
  }
  static nlohmann::json json(const std::string& text) { return nlohmann::json::parse(text); }
  static fs::file_time_type written(const fs::path& cell) {
    return fs::last_write_time(cell / "report.json");
  }
};

// Otherwise they would go on, and the next run would find their folders taken.
TEST_F(Reproduce, CellsEndWithTheProcessThatStartedThem) {
  const std::string one = "--cell 2 --set process.checkpoint_every=1";
  const pid_t parent = start(command(one, 100000));
  const fs::path state = folder_ / "out" / "2_loop" / "seed0" / "checkpoint" / "state.safetensors";
  while (!fs::exists(state) && waitpid(parent, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFSIGNALED(status)) << text_of(path("stderr"));
  const Outcome again = run(command(one));
  EXPECT_EQ(again.code, 0) << again.err << text_of(path("out/2_loop/seed0/log.txt"));
}

TEST_F(Reproduce, ATableIsRunOnUntilItIsWhole) {
  const Outcome listed = run(command("--list"));
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_NE(listed.out.find("2_loop"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("to run"), std::string::npos);
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
  const std::string of_row = cells[2]["command"];
  const std::string bank = std::regex_replace(
      of_row, std::regex(".*generate.bank=(\\S*bank_[0-9a-f]{12}.safetensors).*"), "$1");
  EXPECT_TRUE(fs::exists(bank)) << bank;
  EXPECT_EQ(json(text_of(folder_ / "out" / "table.json")), table);
  const std::string text = text_of(folder_ / "out" / "table.md");
  EXPECT_NE(text.find("| 2_loop | training | 0, 1 |"), std::string::npos) << text;
  EXPECT_EQ(text.find("paper"), std::string::npos) << text;  // nothing was published of it

  // The command of a cell is all there is to it.
  const std::string again = cells[2]["command"].get<std::string>().substr(4);
  const std::string model = "/model.safetensors";
  const std::string folder = cells[2]["folder"], before = text_of(folder + model);
  fs::remove(folder + model);
  ASSERT_EQ(run(again).code, 0);
  EXPECT_EQ(text_of(folder + model), before);

  // Killed between its report and its page: not finished, although the report is there.
  fs::create_directory(fs::path(folder) / "checkpoint");
  write("out/2_loop/seed0/report.html.tmp-1", "half");
  EXPECT_EQ(json(run(command("--list --format json")).out)["cells"][2]["finished"], false);
  ASSERT_EQ(run(command()).code, 0);
  EXPECT_FALSE(fs::exists(fs::path(folder) / "checkpoint"));
  EXPECT_FALSE(fs::exists(fs::path(folder) / "report.html.tmp-1"));
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
  expect_error(2, "reproduce ablation -o " + path("out"), {"--model"});
  expect_error(2, "reproduce ablation" + model + " --seeds 0,x", {"--seeds", "'x'"});
  expect_error(2, command("--cell 9"), {"no cell 9", "0 to 3"});
  expect_error(2, command("--rows none"), {"no row"});
  const Outcome builtin = run("reproduce ablation --list" + model);
  EXPECT_NE(builtin.out.find("11_image_bank"), std::string::npos) << builtin.out << builtin.err;
}

// A table as published ones are: with values, weights and data that it names.
class PublishedTable : public Cli {
 protected:
  void SetUp() override {
    setenv("ZSQ_CACHE", path("cache").c_str(), 1);
    const auto eval = nlohmann::json::parse(
        run("eval " + tiny().model.string() +
            " --preset cifar10 --format json --threads 1 --data " + tiny().images.string())
            .out);
    top1_ = eval["top1"];
    images_ = eval["images"];
    sha256_ = formats::sha256_of_file(tiny().model);
  }
  void TearDown() override { unsetenv("ZSQ_CACHE"); }

  std::string table(double top1, const std::string& sha256, int version = 1) const {
    std::ostringstream text;
    text << "about: a test\nsource: nowhere\nversion: " << version << "\ntolerance: 100\n"
         << "data_sets:\n  shapes: {about: shapes, from: the drawer, images: " << images_ << "}\n"
         << "networks:\n"
         << "  tiny: {about: Tiny, data_set: shapes, preset: cifar10, top1: " << top1
         << ", files: [{name: tiny.onnx, from: the shelf, sha256: '" << sha256 << "'}]}\n"
         << "  absent: {about: Absent, data_set: shapes, preset: cifar10, top1: 80, files: "
            "[{name: absent.pth, from: far away}]}\n"
         << "rows:\n"
         << "  - {name: tiny_w8a8, network: tiny, recipe: instant, published: 50, note: by hand,\n"
         << "     settings: [process.agreement_images=0]}\n"
         << "  - {name: absent_w8a8, network: absent, recipe: instant, published: 70}\n";
    return write("table.yaml", text.str());
  }
  std::string reproduce(const std::string& table, const std::string& more = "") const {
    return "reproduce " + table + " -o " + path("out") + " --threads 1 --weights_dir " +
           tiny().model.parent_path().string() + " --data shapes=" + tiny().images.string() + " " +
           more;
  }
  nlohmann::json result(const std::string& command) const {
    const Outcome outcome = run(command + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  double top1_ = 0;
  std::int64_t images_ = 0;
  std::string sha256_;
};

TEST_F(PublishedTable, HasPaperOursGapAndReason) {
  const std::string file = table(top1_, sha256_);
  const auto whole = result(reproduce(file));
  const auto& ran = whole["rows"][0];
  EXPECT_EQ(ran["published"], 50);
  EXPECT_NEAR(ran["gap"].get<double>(), ran["mean_top1"].get<double>() - 50, 0.0051);
  EXPECT_EQ(ran["reason"], "within 100.0 points; by hand");
  // Without its weights a row says where these come from, and is no failure.
  const auto& absent = whole["rows"][1];
  EXPECT_TRUE(absent["mean_top1"].is_null());
  EXPECT_NE(absent["reason"].get<std::string>().find("absent.pth (from far away)"),
            std::string::npos)
      << absent;
  for (const char* form : {"table.md", "table.csv", "table.tex", "table.json"})
    EXPECT_NE(text_of(folder_ / "out" / form).find("tiny"), std::string::npos) << form;
  EXPECT_NE(text_of(folder_ / "out" / "table.csv").find("tiny_w8a8,\"Tiny, W8A8\",0,50.00,"),
            std::string::npos)
      << text_of(folder_ / "out" / "table.csv");
  EXPECT_TRUE(fs::exists(folder_ / "out" / "inputs.json"));  // measured once
}

TEST_F(PublishedTable, FinishedIsWhatHasTheSameContent) {
  const std::string file = table(top1_, sha256_);
  result(reproduce(file));
  const auto finished = [&](const std::string& command) {
    return result(command + " --list")["cells"][0]["finished"].get<bool>();
  };
  EXPECT_TRUE(finished(reproduce(file)));
  // Elsewhere, the same bytes.
  fs::copy_file(tiny().model, folder_ / "copy.onnx");
  fs::copy_file(tiny().images, folder_ / "copy.npz");
  const std::string copies = "reproduce " + file + " -o " + path("out") +
                             " --threads 1 --model tiny=" + path("copy.onnx") + " --data " +
                             path("copy.npz");
  EXPECT_TRUE(finished(copies));
  // Other weights, other images, another version of the table, another setting.
  std::ofstream(path("copy.npz"), std::ios::app) << "x";
  EXPECT_FALSE(finished(copies));
  EXPECT_FALSE(finished(reproduce(file, "--set quantize.weights.num_bits=7")));
  EXPECT_FALSE(finished(reproduce(table(top1_, sha256_, /*version=*/2))));
  table(top1_, sha256_);
  EXPECT_TRUE(finished(reproduce(file)));
}

TEST_F(PublishedTable, WrongInputsStopItBeforeAnythingRuns) {
  expect_error(2, reproduce(table(top1_ + 5, sha256_)),
               {"tiny.onnx", "in float", "from the shelf", "--other_inputs"});
  EXPECT_FALSE(fs::exists(folder_ / "out" / "tiny_w8a8"));
  const std::string other(64, '0');
  expect_error(2, reproduce(table(top1_, other)), {"SHA-256 " + sha256_, "from the shelf"});
  EXPECT_FALSE(fs::exists(folder_ / "out" / "tiny_w8a8"));
  images_ += 1;
  expect_error(2, reproduce(table(top1_, sha256_)),
               {"images; the table needs", "the drawer", "--other_inputs"});
  images_ -= 1;
  const auto row = result(reproduce(table(top1_ + 5, other), "--other_inputs"))["rows"][0];
  const std::string reason = row["reason"];
  for (const char* part : {"other weights", "in float instead of", "by hand"})
    EXPECT_NE(reason.find(part), std::string::npos) << reason;
}

TEST_F(PublishedTable, WhatCannotRunAndWhatIsAmbiguousIsSaid) {
  const std::string file = table(top1_, sha256_);
  expect_error(2, "reproduce " + file + " -o " + path("out"),
               {"tiny.onnx (from the shelf)", "--data"});
  expect_error(2, reproduce(file, "--cell 1"), {"absent.pth"});
  expect_error(2, reproduce(file, "--model x=y"), {"'x'", "network or data set"});
  expect_error(2, reproduce(file, "--model tiny=nowhere.onnx"), {"there is no 'nowhere.onnx'"});
  expect_error(2, reproduce(file, "--model " + tiny().model.string()),
               {"NAME=PATH", "absent, tiny"});
  expect_error(2, "reproduce " + file, {"--output_path"});
}

TEST_F(Cli, PublishedTablesAreListedWithWhatTheyNeed) {
  const Outcome tables = run("reproduce");
  ASSERT_EQ(tables.code, 0) << tables.err;
  for (const char* table :
       {"ablation", "ait_table1", "qimera", "low_bit", "block_reconstruction", "results"})
    EXPECT_NE(tables.out.find(table), std::string::npos) << tables.out;
  const Outcome cells = run("reproduce ait_table1 --list --seeds 0");
  ASSERT_EQ(cells.code, 0) << cells.err;
  for (const char* part :
       {"qimera_ait_cifar10_resnet20_w4a4", "91.23", "lacks inputs",
        "resnet20_cifar10-0597-9b0024ac.pth (from https://", "--data imagenet=PATH"})
    EXPECT_NE(cells.out.find(part), std::string::npos) << cells.out;
  EXPECT_EQ(std::count(cells.out.begin(), cells.out.end(), 'W'), 20);  // a cell, a scheme
}

}  // namespace
}  // namespace zsq
