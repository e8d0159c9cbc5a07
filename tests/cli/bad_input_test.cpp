// SPDX-License-Identifier: Apache-2.0
// What a person gets wrong is named, with what was expected and what to do; nothing half-written is
// left.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/networks.h"

namespace zsq {
namespace {

TEST_F(Cli, WrongWordsExitWith2AndNameTheNearest) {
  expect_error(2, "quantise x", {"'quantise'", "did you mean 'quantize'"});
  expect_error(2, "quantize x -o y --shceme W4A4", {"--shceme", "did you mean '--scheme'"});
  expect_error(2, "quantize x -o y --iterations 3", {"'--iterations'", "--set section.key=value"});
  expect_error(2, "quantize x -o y --scheme W9A0", {"'W9A0' is not a scheme", "W4A4"});
  expect_error(2, "quantize x --scheme W4A4", {"--output_path"});
  expect_error(2, "quantize", {"MODEL is missing"});
  expect_error(2, "quantize x -o y --set finetune.iteration=5",
               {"'finetune.iteration' is not a recipe key", "'finetune.iterations'"});
  expect_error(2, "quantize x -o y --seed soon", {"process.seed: 'soon' is not a whole number"});
  expect_error(2, "quantize x -o y --recipe deploi", {"did you mean 'deploy'"});
  expect_error(2, "quantize x -o y --time_budget soon", {"10min"});
  expect_error(2, "quantize x -o y --min_top1 90", {"--eval_data"});
  expect_error(2, "quantize x -o y --min_agreement 90 --set process.agreement_images=0",
               {"min_agreement", "process.agreement_images"});
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
  EXPECT_FALSE(fs::exists(path("out")));
  const std::string recipe = write("r.yaml", "finetune:\n  iterations: 5\n  batchsize: 3\n");
  expect_error(2, "quantize x" + out + " --recipe " + recipe,
               {"r.yaml:3", "'finetune.batchsize'", "'finetune.batch_size'"});
}

TEST_F(Cli, DataThatIsNotThereIsNamed) {
  const std::string model = tiny().model.string();
  expect_error(2, "eval " + model + " --preset cifar10 --data " + path("none"),
               {path("none").c_str()});
  expect_error(2, "run " + model + " " + path("none.png"), {"--preset", "cifar10"});
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

TEST_F(Cli, AModelWithoutTheBatchNormThatIsRequiredExitsWith4AndTellsTheExportLine) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const fs::path folded = test::network_path("resnet20_random_folded.onnx");
  expect_error(4, "quantize " + folded.string() + " --require_bn -o " + path("out"),
               {"BatchNorm", "torch.onnx.export"});
  const Outcome inspect = run("inspect --format json " + folded.string());
  EXPECT_EQ(inspect.code, 0) << inspect.err;
  EXPECT_EQ(nlohmann::json::parse(inspect.out)["quantizable"], true);
}

TEST_F(Cli, ANetworkWithoutBatchNormIsQuantizedWithANotice) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const Outcome outcome =
      run("quantize " + test::network_path("resnet20_random_folded.onnx").string() +
          " --recipe instant+gptq --preset cifar10 -o " + path("out") +
          " --set process.agreement_images=16 --set quantize.gptq.images=16");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("has no BatchNorm layers"), std::string::npos) << outcome.err;
  EXPECT_TRUE(fs::exists(folder_ / "out" / "model.onnx"));
}

TEST_F(Cli, StatisticsThatDoNotFitAreNamed) {
  expect_error(2, "inspect " + tiny().model.string() + " --bn_stats " + path("none.safetensors"),
               {"none.safetensors"});
}

TEST_F(Cli, NumbersOutOfPlaceAreNamed) {
  const std::string model = tiny().model.string();
  for (const char* top : {"0", "-1", "1.5", "many"})
    expect_error(2, "run " + model + " x.png --preset cifar10 --top " + top, {"--top", top});
  expect_error(2, "quantize " + model + " -o y --min_top1 nan", {"--min_top1", "'nan'"});
}

TEST_F(Cli, NamesThatNoFileSystemTakesExitWith2) {
  const std::string name(300, 'x');
  expect_error(2, "inspect " + name + ".onnx", {"xxx.onnx", "File name too long"});
  expect_error(2, "quantize " + tiny().model.string() + " -o " + path(name),
               {"xxx", "--output_path"});
}

TEST_F(Cli, AFileThatCannotBeWrittenToItsEndLeavesNothingBehind) {
  const Outcome outcome = run("-c 'ulimit -f 20; exec " ZSQ_BINARY " quantize " +
                                  tiny().model.string() + " -o " + path("out") + kShort + "'",
                              "bash");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("cannot be written: File too large"), std::string::npos)
      << outcome.err;
  for (const auto& entry : fs::recursive_directory_iterator(path("out")))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  EXPECT_FALSE(fs::exists(folder_ / "out" / "model.onnx"));
}

TEST_F(Cli, AResultThatNobodyGotIsNoSuccess) {
  const Outcome outcome = run("-c '" ZSQ_BINARY " recipes > /dev/full'", "sh");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace zsq
