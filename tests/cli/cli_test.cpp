// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/networks.h"

namespace zsq {
namespace {

TEST_F(Cli, HelpAndVersion) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* verb : {"inspect", "quantize", "eval", "generate", "check", "run", "select",
                           "reproduce", "bench", "recipes"}) {
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

std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  return {std::sregex_token_iterator(text.begin(), text.end(), expression, 1), {}};
}

TEST_F(Cli, TheManualPageHasEveryVerbWithItsFlags) {
  const std::string page = run("--manual").out;
  const std::set<std::string> verbs = matches(run("--help").out, R"(\n  ([a-z]+) )");
  EXPECT_EQ(matches(page, R"(\n\.SS (\w+)\n)"), verbs);
  EXPECT_GE(verbs.size(), 10u);
  for (const std::string& verb : verbs) {
    const std::size_t begin = page.find("\n.SS " + verb + "\n");
    const std::string section = page.substr(begin, page.find("\n.S", begin + 1) - begin);
    // A flag stands at the start of its line, -o [ --output ] after its short form.
    const auto flags = matches(run(verb + " --help").out, R"(\n  (?:-\w \[ )?--(\w+))");
    EXPECT_EQ(matches(section, R"(\n\.TP\n(?:\\fB\\-\w\\fR, )?\\fB\\-\\-(\w+)\\fR )"), flags)
        << section;
    EXPECT_EQ(flags.count("quiet"), 1u) << verb;
  }
  EXPECT_NE(page.find("\n.SH EXIT STATUS\n0 ok"), std::string::npos);
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

  const Outcome evaluated = run("eval " + path("out") + " --format json --data " + images);
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const auto json = nlohmann::json::parse(evaluated.out);
  EXPECT_NE(evaluated.err.find("records it (cifar10)"), std::string::npos) << evaluated.err;
  EXPECT_EQ(json["preset"], "cifar10");
  for (const char* key :
       {"model", "data", "preset", "preprocessing", "images", "top1", "top5", "seconds"})
    EXPECT_TRUE(json.contains(key)) << key;
  const auto report = nlohmann::json::parse(text_of(folder_ / "out" / "report.json"));
  EXPECT_EQ(report["scheme"], "W8A8");
  EXPECT_EQ(report["preprocessing"], json["preprocessing"]);
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
  const Outcome unlike = run("quantize " + model + " --min_agreement 100.5 --recipe " +
                             path("out") + "/resolved.yaml -o " + path("gate"));
  EXPECT_EQ(unlike.code, 3) << unlike.err;
  EXPECT_NE(unlike.err.find("is below the 100.5"), std::string::npos) << unlike.err;
}

TEST_F(Cli, BudgetsAndSensitivity) {
  setenv("ZSQ_CACHE", path("cache").c_str(), 1);
  const std::string model = tiny().model.string();
  const std::string few =
      " --threads 1 --set mixed.images=8 --set generate.images.steps=5 "
      "--preset cifar10";
  const Outcome table = run("inspect --sensitivity " + model + few);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find(" W2 "), std::string::npos) << table.out;
  // Every line of numbers has as many columns as the head.
  std::istringstream lines(table.out.substr(table.out.find("\n\n") + 2));
  std::size_t width = 0;
  for (std::string line; std::getline(lines, line);) {
    width = width ? width : line.size();
    EXPECT_TRUE(line.size() == width || line.size() == width - 70) << line;
  }
  const Outcome listed = run("inspect --sensitivity --format json --quiet " + model + few);
  EXPECT_EQ(nlohmann::json::parse(listed.out)["images"], 8);
  EXPECT_EQ(listed.err, "");

  const std::string quantize = "quantize " + model + " --recipe instant -o " + path("out") + few;
  const Outcome mixed = run(quantize + " --target_size 25%");
  ASSERT_EQ(mixed.code, 0) << mixed.err;
  EXPECT_NE(mixed.out.find("layers "), std::string::npos) << mixed.out;
  const auto report = nlohmann::json::parse(text_of(folder_ / "out" / "report.json"));
  EXPECT_EQ(report["mixed"]["budget_kind"], "size");
  EXPECT_LE(report["size"]["quantized_bytes"], 0.25 * report["size"]["fp32_bytes"].get<double>());
  EXPECT_NE(text_of(folder_ / "out" / "report.html").find("chosen for a budget"),
            std::string::npos);
  const Outcome ranked = run("select --threads 1 -n 8 --set generate.images.steps=5 " +
                             path("out") + " " + path("out"));
  EXPECT_EQ(ranked.code, 0) << ranked.err;
  EXPECT_NE(ranked.out.find("   2  "), std::string::npos) << ranked.out;
  expect_error(2, quantize + " --quiet --target_size 1%", {"cannot be reached", "smallest"});
  expect_error(2, quantize + " --target_size much", {"mixed.target_size", "120kB"});
  unsetenv("ZSQ_CACHE");
}

TEST_F(Cli, GenerateWritesImages) {
  const std::string command = "generate " + tiny().model.string() +
                              " -n 6 --preset cifar10 --threads 1 --set generate.images.steps=3";
  const Outcome outcome = run(command + " --format json -o " + path("out"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["images"], 6);
  EXPECT_EQ(json["form"], "png");
  EXPECT_TRUE(fs::exists(folder_ / "out" / "synsets.txt"));
  EXPECT_NE(outcome.err.find("images"), std::string::npos);  // progress
  const Outcome human = run(command + " --quiet --form safetensors -o " + path("bank"));
  EXPECT_NE(human.out.find("bank.safetensors"), std::string::npos) << human.out << human.err;
  EXPECT_EQ(human.err, "");

  const std::string model = "generate " + tiny().model.string();
  expect_error(2, command + " -o " + path("out"), {"holds images already"});
  expect_error(2, model + " -o " + path("x"), {"--preset", "cifar10"});
  expect_error(2, model, {"--output_path"});
  expect_error(2, command + " --form safetensor -o " + path("x"),
               {"did you mean 'safetensors'", "png, npy, npz, ort"});
  expect_error(2, model + " -n 1.5 -o " + path("x"), {"'1.5' is not a whole number"});
  expect_error(2, command + " -o " + write("file", "x") + "/below", {"output folder"});
}

TEST_F(Cli, RunComparesWithStoredArrays) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const fs::path model = test::network_path("resnet20_random.onnx");
  const std::string arrays = model.parent_path() / "resnet20_random.npz";
  const std::string other = model.parent_path() / "resnet18_w25.npz";
  const Outcome equal = run("run " + model.string() + " --compare --npz " + arrays);
  EXPECT_EQ(equal.code, 0) << equal.out << equal.err;
  EXPECT_EQ(run("run " + model.string() + " --compare --tolerance 1e-12 --npz " + arrays).code, 3);
  EXPECT_EQ(run("run " + model.string() + " --compare --npz " + other).code, 2);
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// PyTorch's answer to a photograph is the folder that holds it.
TEST_F(Cli, RunNamesClassesOfImages) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const fs::path folder = test::network_path("photographs");
  const auto synsets = lines_of(folder / "synsets.txt"), names = lines_of(folder / "classes.txt");
  const auto label =
      std::find_if(synsets.begin(), synsets.end(),
                   [&](const std::string& synset) { return fs::exists(folder / synset); }) -
      synsets.begin();
  ASSERT_LT(label, 1000);
  const std::string file = fs::directory_iterator(folder / synsets[label])->path().string();
  const Outcome outcome =
      run("run " + test::network_path("efficientnet_lite0.onnx").string() + " " + file +
          " --preset efficientnet_lite0 --set data.antialias=true --format json --top 3" +
          " --classes " + (folder / "classes.txt").string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json[0]["classes"].size(), 3u);
  EXPECT_EQ(json[0]["classes"][0]["index"], label);
  EXPECT_EQ(json[0]["classes"][0]["name"].get<std::string>(), names[label]);
}

// TorchScript and exported programs are models like any other, under any name: what becomes of them
// is what becomes of the ONNX file of the same network.
TEST_F(Cli, ProgramsOfPyTorchAreInspectedEvaluatedAndQuantized) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto images =
      " --preset cifar10 --format json --data " + test::network_path("cifar10").string();
  const auto top1 = [&](const std::string& model) {
    const auto evaluated = run("eval " + model + images);
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    return nlohmann::json::parse(evaluated.out)["top1"].get<double>();
  };
  const auto top1_of_student = [&](const std::string& model) {
    const auto quantized = run("quantize " + model + " --scheme W8A8 --recipe instant" +
                               " --preset cifar10 -o " + path("out") + kShort);
    EXPECT_EQ(quantized.code, 0) << quantized.err;
    return top1(path("out"));
  };
  const auto wanted = top1_of_student(test::network_path("resnet20_random.onnx").string());
  for (const std::string kind : {".traced.pt", ".pt2"}) {
    const auto model = folder_ / "model.bin";
    fs::copy_file(test::network_path("resnet20_random" + kind), model,
                  fs::copy_options::overwrite_existing);
    const auto inspected = run("inspect --format json " + model.string());
    ASSERT_EQ(inspected.code, 0) << inspected.err;
    const auto found = nlohmann::json::parse(inspected.out);
    EXPECT_EQ(found["format"], kind == ".pt2" ? "pt2" : "torchscript");
    EXPECT_EQ(found["input_shape"], nlohmann::json({3, 32, 32}));
    EXPECT_EQ(found["quantizable"], true);
    // PyTorch's run of the same network gave the labels.
    EXPECT_GT(top1(model.string()), 99.5);
    EXPECT_EQ(top1_of_student(model.string()), wanted);
  }
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
