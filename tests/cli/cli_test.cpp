// SPDX-License-Identifier: Apache-2.0
// The program as a person meets it: exit codes, messages, files.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/shared.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Cli : public ::testing::Test {
 protected:
  Outcome run(const std::string& arguments, const char* program = ZSQ_BINARY) const {
    const std::string command = std::string(program) + " " + arguments + " >" + path("stdout") +
                                " 2>" + path("stderr") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(path("stdout")),
            text_of(path("stderr"))};
  }

  // Runs, expects the exit code and that the message on stderr holds every part.
  void expect_error(int code, const std::string& arguments,
                    std::initializer_list<const char*> parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    for (const char* part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << "\n" << outcome.err;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.file(name, text).string();
  }

  test::TempFolder folder_;
};

// Trained once per build of this test and kept: ctest starts a process for each test.
struct TinyFiles {
  TinyFiles() {
    if (fs::exists(images) && fs::last_write_time(images) > fs::last_write_time("/proc/self/exe"))
      return;
    const test::TinyNetwork network = test::train_tiny_network(0);
    const fs::path fresh = folder / std::to_string(getpid());
    fs::create_directories(fresh);
    test::save_onnx(network.model, fresh / "tiny.onnx");
    test::save_npz(network.test, fresh / "tiny.npz");
    fs::rename(fresh / "tiny.onnx", model);
    fs::rename(fresh / "tiny.npz", images);
    fs::remove_all(fresh);
  }
  fs::path folder = ZSQ_TEST_FOLDER;
  fs::path model = folder / "tiny.onnx", images = folder / "tiny.npz";
};
const TinyFiles& tiny() {
  static const TinyFiles files;
  return files;
}

const std::string kShort =
    " --set finetune.iterations=20 --set finetune.batch_size=16 --set finetune.warmup=0.5"
    " --set quantize.activations.calibration_images=64 --set process.agreement_images=64 --threads "
    "1";

TEST_F(Cli, HelpAndVersion) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* verb : {"inspect", "quantize", "eval", "run", "bench", "recipes"}) {
    EXPECT_NE(help.out.find(verb), std::string::npos) << help.out;
    const Outcome verb_help = run(std::string(verb) + " --help");
    EXPECT_EQ(verb_help.code, 0) << verb_help.err;
    EXPECT_EQ(verb_help.out.find("usage: zsq " + std::string(verb)), 0u) << verb_help.out;
    EXPECT_NE(verb_help.out.find("--format"), std::string::npos);
  }
  const Outcome version = run("--version");
  EXPECT_EQ(version.code, 0);
  for (const char* part : {"zsq ", "libtorch 2.", "CUDA ", "cuDNN ", "OpenCV ", "compiler "})
    EXPECT_NE(version.out.find(part), std::string::npos) << version.out;
}

TEST_F(Cli, WrongWordsExitWith2AndNameTheNearest) {
  expect_error(2, "quantise x", {"'quantise'", "did you mean 'quantize'"});
  expect_error(2, "quantize x -o y --shceme W4A4", {"--shceme", "did you mean '--scheme'"});
  expect_error(2, "quantize x -o y --scheme W9A0", {"'W9A0' is not a scheme", "W4A4"});
  expect_error(2, "quantize x --scheme W4A4", {"--output_path"});
  expect_error(2, "quantize", {"MODEL is missing"});
  expect_error(2, "quantize x -o y --set finetune.iteration=5",
               {"'finetune.iteration' is not a recipe key", "'finetune.iterations'"});
  expect_error(2, "quantize x -o y --seed soon", {"process.seed: 'soon' is not a whole number"});
  expect_error(2, "quantize x -o y --recipe deploi", {"did you mean 'deploy'"});
  expect_error(2, "quantize x -o y --time_budget soon", {"10min"});
  expect_error(2, "quantize x -o y --min_top1 90", {"--eval_data"});
  expect_error(2, "quantize x -o y --format xml", {"'xml'"});
  expect_error(2, "eval x y", {"too many positional"});
  EXPECT_EQ(run("").code, 2);
}

TEST_F(Cli, BadFilesExitWith2AndAreNamed) {
  const std::string out = " -o " + path("out");
  expect_error(2, "quantize " + path("none.onnx") + out, {"none.onnx"});
  expect_error(2, "inspect " + path("none.onnx"), {"none.onnx"});
  expect_error(2, "quantize " + write("empty.onnx", "") + out, {"empty.onnx"});
  expect_error(2, "quantize " + write("text.onnx", "not a model") + out, {"text.onnx"});
  expect_error(2, "inspect " + folder_.path().string(), {"model.onnx"});
  const std::string recipe = write("r.yaml", "finetune:\n  iterations: 5\n  batchsize: 3\n");
  expect_error(2, "quantize x" + out + " --recipe " + recipe,
               {"r.yaml:3", "'finetune.batchsize'", "'finetune.batch_size'"});
}

TEST_F(Cli, DataThatIsNotThereIsNamed) {
  const std::string model = tiny().model.string();
  expect_error(2, "eval " + model + " --preset cifar10 --data " + path("none"),
               {path("none").c_str()});
  expect_error(2, "eval " + model + " --data " + tiny().images.string(), {"--preset", "cifar10"});
  expect_error(2, "eval " + model + " --preset cifar10", {"--data"});
  expect_error(
      2,
      "quantize " + model + " -o " + path("out") + " --preset cifar10 --eval-data " + path("none"),
      {path("none").c_str()});
  expect_error(2, "run " + model + " --preset cifar10 " + path("none.png"), {"none.png"});
  expect_error(2, "run " + model + " --npz x", {"--compare"});
}

TEST_F(Cli, AnOutputFolderThatCannotBeMadeIsSaidBeforeTheWork) {
  expect_error(2, "quantize " + tiny().model.string() + " -o " + write("file", "x") + "/below",
               {"cannot create the output folder", "/file/below"});
}

TEST_F(Cli, AModelWithoutBatchNormExitsWith4AndTellsTheExportLine) {
  const fs::path folded = test::shared_path("models/resnet20_cifar10_folded.onnx");
  ZSQ_SKIP_WITHOUT(folded);
  expect_error(4, "quantize " + folded.string() + " -o " + path("out"),
               {"BatchNorm", "torch.onnx.export"});
  const Outcome inspect = run("inspect --format json " + folded.string());
  EXPECT_EQ(inspect.code, 0) << inspect.err;
  EXPECT_EQ(nlohmann::json::parse(inspect.out)["quantizable"], false);
}

TEST_F(Cli, RecipesAreListedShownAndExplained) {
  const Outcome list = run("recipes");
  EXPECT_NE(list.out.find("paper/ait_resnet18_w4a4"), std::string::npos);
  EXPECT_NE(list.out.find("66.83"), std::string::npos);
  const Outcome shown = run("recipes paper/ait_resnet50_w4a4 --set process.seed=9");
  EXPECT_NE(shown.out.find("superposed_share: 0.7"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("seed: 9"), std::string::npos);
  EXPECT_EQ(run("recipes " + write("again.yaml", shown.out)).out, shown.out);
  EXPECT_NE(run("recipes --settings").out.find("quantize.weights.num_bits: 4\n"),
            std::string::npos);
}

TEST_F(Cli, InspectTellsLayersAndBits) {
  const Outcome outcome = run("inspect --format json --scheme 4w4a " + tiny().model.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["quantizable"], true);
  EXPECT_EQ(json["input_shape"], nlohmann::json({3, 16, 16}));
  EXPECT_EQ(json["classes"], 8);
  std::vector<int> bits;
  for (const auto& layer : json["layers"])
    if (layer["weight_bits"] != 0) bits.push_back(layer["weight_bits"]);
  ASSERT_GE(bits.size(), 3u);
  EXPECT_EQ(bits.front(), 8);
  EXPECT_EQ(bits.back(), 8);
  EXPECT_EQ(bits[1], 4);
  EXPECT_NE(run("inspect " + tiny().model.string()).out.find("W4A4"), std::string::npos);
}

TEST_F(Cli, QuantizeEvalAndRunWorkTogether) {
  const std::string model = tiny().model.string(), images = tiny().images.string();
  const Outcome quantized =
      run("quantize " + model + " --scheme W8A8 --preset cifar10 --eval-data " + images + " -o " +
          path("out") + kShort);
  ASSERT_EQ(quantized.code, 0) << quantized.err;
  EXPECT_NE(quantized.out.find("student"), std::string::npos) << quantized.out;
  for (const char* file :
       {"model.onnx", "model.safetensors", "report.json", "report.html", "resolved.yaml"})
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  EXPECT_FALSE(fs::exists(folder_ / "out" / "checkpoint"));

  const Outcome evaluated =
      run("eval " + path("out") + " --preset cifar10 --format json --data " + images);
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const auto json = nlohmann::json::parse(evaluated.out);
  for (const char* key : {"model", "data", "preset", "images", "top1", "top5", "seconds"})
    EXPECT_TRUE(json.contains(key)) << key;
  const auto report = nlohmann::json::parse(text_of(folder_ / "out" / "report.json"));
  EXPECT_EQ(report["scheme"], "W8A8");
  EXPECT_NEAR(json["top1"].get<double>(), report["student"]["top1"].get<double>(), 0.5);

  EXPECT_NE(run("inspect " + path("out")).out.find("already quantized"), std::string::npos);

  // The resolved recipe repeats the run.
  const Outcome again = run("quantize " + model + " --quiet --recipe " + path("out") +
                            "/resolved.yaml -o " + path("again"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  const Outcome gate = run("quantize " + model + " --min_top1 100.5 --recipe " + path("out") +
                           "/resolved.yaml -o " + path("gate"));
  EXPECT_EQ(gate.code, 3) << gate.err;
  EXPECT_TRUE(fs::exists(folder_ / "gate" / "model.onnx"));
}

TEST_F(Cli, RunComparesWithStoredArrays) {
  const fs::path model = test::shared_path("importer/resnet20_random.onnx");
  ZSQ_SKIP_WITHOUT(model);
  const std::string arrays = model.parent_path() / "resnet20_random.npz";
  const std::string other = model.parent_path() / "resnet18_w25.npz";
  const Outcome equal = run("run " + model.string() + " --compare --npz " + arrays);
  EXPECT_EQ(equal.code, 0) << equal.out << equal.err;
  EXPECT_EQ(run("run " + model.string() + " --compare --tolerance 1e-12 --npz " + arrays).code, 3);
  EXPECT_EQ(run("run " + model.string() + " --compare --npz " + other).code, 2);
}

TEST_F(Cli, RunNamesClassesOfImages) {
  const fs::path image = test::shared_path("data/imagenet_sample/n01440764");
  const fs::path model = test::shared_path("models/efficientnet_lite0.onnx");
  ZSQ_SKIP_WITHOUT(image);
  const std::string file = fs::directory_iterator(image)->path().string();
  const Outcome outcome = run("run " + model.string() + " " + file +
                              " --preset efficientnet_lite0 --format json --top 3 --classes " +
                              (image.parent_path() / "classes.txt").string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json[0]["classes"].size(), 3u);
  EXPECT_EQ(json[0]["classes"][0]["index"], 0);  // n01440764 is the first synset, the tench
  EXPECT_NE(json[0]["classes"][0]["name"].get<std::string>().find("tench"), std::string::npos);
}

TEST_F(Cli, ASignalStopsWith75AndTheCheckpointKnowsItsRun) {
  const std::string command = "quantize " + tiny().model.string() + " -o " + path("out") + kShort;
  const pid_t child = fork();
  if (child == 0) {
    const std::string line = "exec " ZSQ_BINARY " " + command +
                             " --set finetune.iterations=100000 >" + path("stdout") + " 2>" +
                             path("stderr");
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  // Once progress is reported, the loop runs.
  while (text_of(path("stderr")).find("warm-up") == std::string::npos &&
         waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 75) << text_of(path("stderr"));
  EXPECT_TRUE(fs::exists(folder_ / "out" / "checkpoint"));
  expect_error(2, command + " --resume", {"finetune.iterations = 100000, this run has 20"});
  expect_error(2, "quantize " + tiny().model.string() + " -o " + path("new") + kShort + " --resume",
               {"nothing to resume"});
}

TEST_F(Cli, TheExampleRuns) {
  const Outcome outcome = run(tiny().model.string() + " " + path("out") +
                                  " W4A4 finetune.iterations=10 finetune.batch_size=16"
                                  " process.agreement_images=64 process.threads=1",
                              ZSQ_EXAMPLE);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("W4A4: "), std::string::npos) << outcome.out;
  EXPECT_TRUE(fs::exists(folder_ / "out" / "model.onnx"));
  EXPECT_EQ(run("", ZSQ_EXAMPLE).code, 2);
}

}  // namespace
}  // namespace zsq
