// SPDX-License-Identifier: Apache-2.0
// Images in every form, as other programs find them.
#include "pipeline/generate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "formats/atomic_file.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "models/execute.h"
#include "models/load.h"
#include "pipeline/evaluate.h"
#include "pipeline/quantize.h"
#include "tests/support/tiny_network.h"

namespace zsq::generate_test {
namespace {

namespace fs = std::filesystem;

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error was thrown";
  return ErrorCode::internal;
}

// One network for all tests, in a folder that goes with the process.
class Generate : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    fs::create_directories(root());
    test::save_onnx(test::train_tiny_network(0).model, root() / "tiny.onnx");
  }
  static void TearDownTestSuite() { fs::remove_all(root()); }
  static fs::path root() {
    return fs::temp_directory_path() / ("zsq_generate_" + std::to_string(getpid()));
  }
  static fs::path model() { return root() / "tiny.onnx"; }

  static GenerateOptions options(const std::string& form, const std::string& preset = "cifar10") {
    GenerateOptions options;
    options.recipe =
        load_recipe("deploy", {"generate.images.steps=60", "generate.images.batch_size=10",
                               "process.threads=1", "data.preset=" + preset});
    options.images = 20;
    options.form = form;
    return options;
  }
  // The folder of a test and form.
  fs::path out(const std::string& name) const {
    return root() / ::testing::UnitTest::GetInstance()->current_test_info()->name() / name;
  }
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST_F(Generate, ABankHoldsImagesLabelsAndWhereTheyComeFrom) {
  const GenerateReport report = generate(model(), options("safetensors"), out("a"));
  EXPECT_EQ(names_in(out("a")), (std::vector<std::string>{"bank.safetensors"}));
  EXPECT_EQ(report.files, (std::vector<fs::path>{out("a") / "bank.safetensors"}));
  EXPECT_EQ(report.images, 20);
  EXPECT_EQ(report.steps, 120);
  const auto bank = formats::read_safetensors(report.files[0]);
  EXPECT_EQ(bank.metadata.at("source_sha256"), formats::sha256_of_file(model()));
  EXPECT_EQ(bank.metadata.at("generate.images.steps"), "60");
  EXPECT_EQ(bank.metadata.at("seed"), "0");
  EXPECT_EQ(bank.metadata.count("tool"), 1u);

  // What the report says, from the file alone.
  const models::Model teacher = models::load(model());
  const at::Tensor images = models::to_tensor(*formats::find(bank.tensors, "images"));
  const at::Tensor labels = models::to_tensor(*formats::find(bank.tensors, "labels"));
  const at::Tensor logits = models::execute(teacher.graph, teacher.parameters, images);
  EXPECT_EQ(images.sizes(), at::IntArrayRef({20, 3, 16, 16}));
  EXPECT_NEAR(logits.argmax(1).eq(labels).to(at::kDouble).mean().item<double>(),
              report.label_agreement, 1e-9);
  EXPECT_GT(report.label_agreement, 0.9);

  generate(model(), options("safetensors"), out("b"));
  EXPECT_TRUE(formats::read_file(out("a") / "bank.safetensors") ==
              formats::read_file(out("b") / "bank.safetensors"));
}

TEST_F(Generate, DeadLeavesHaveTheLabelsThatTheNetworkPredicts) {
  auto drawn = options("safetensors");
  drawn.recipe.images.source = ImageSource::dead_leaves;
  const GenerateReport report = generate(model(), drawn, out("a"));
  EXPECT_EQ(report.steps, 0);
  const auto bank = formats::read_safetensors(report.files[0]);
  EXPECT_EQ(bank.metadata.at("generate.images.source"), "dead_leaves");
  const models::Model teacher = models::load(model());
  const at::Tensor images = models::to_tensor(*formats::find(bank.tensors, "images"));
  const at::Tensor labels = models::to_tensor(*formats::find(bank.tensors, "labels"));
  const at::Tensor logits = models::execute(teacher.graph, teacher.parameters, images);
  EXPECT_EQ(images.sizes(), at::IntArrayRef({20, 3, 16, 16}));
  EXPECT_TRUE(logits.argmax(1).equal(labels));
  const at::Tensor surprise = logits.log_softmax(1).gather(1, labels.unsqueeze(1)).neg().mean();
  EXPECT_NEAR(report.cross_entropy, surprise.item<double>(), 1e-4);
  // However many belong to a batch.
  drawn.recipe.images.batch_size = 7;
  const auto other = formats::read_safetensors(generate(model(), drawn, out("b")).files[0]);
  EXPECT_TRUE(formats::find(other.tensors, "images")->data ==
              formats::find(bank.tensors, "images")->data);
}

TEST_F(Generate, AGeneratorsImagesAreDescribedByItsSettings) {
  auto by_generator = options("safetensors");
  by_generator.recipe.images.source = ImageSource::generator;
  by_generator.recipe.images.steps = 20;
  by_generator.recipe.images.batch_size = 8;
  const GenerateReport report = generate(model(), by_generator, out("a"));
  EXPECT_EQ(report.steps, 20);
  const auto bank = formats::read_safetensors(report.files[0]);
  EXPECT_EQ(bank.metadata.at("generate.images.source"), "generator");
  EXPECT_EQ(bank.metadata.at("generate.superposed_share"), "0.4");
  const models::Model teacher = models::load(model());
  const at::Tensor images = models::to_tensor(*formats::find(bank.tensors, "images"));
  const at::Tensor labels = models::to_tensor(*formats::find(bank.tensors, "labels"));
  EXPECT_EQ(images.sizes(), at::IntArrayRef({20, 3, 16, 16}));
  const at::Tensor logits = models::execute(teacher.graph, teacher.parameters, images);
  EXPECT_NEAR(report.label_agreement,
              logits.argmax(1).eq(labels).to(at::kDouble).mean().item<double>(), 1e-9);
}

TEST_F(Generate, GenieTakesItsStepsForEachBatch) {
  auto genie = options("safetensors");
  genie.recipe.images.source = ImageSource::genie;
  genie.recipe.images.steps = 2;
  genie.recipe.images.batch_size = 10;
  const GenerateReport report = generate(model(), genie, out("a"));
  EXPECT_EQ(report.images, 20);
  EXPECT_EQ(report.steps, 4);
  EXPECT_EQ(formats::read_safetensors(report.files[0]).metadata.at("generate.images.source"),
            "genie");
}

TEST_F(Generate, AMixtureIsOfOptimisedImagesAndDeadLeaves) {
  auto mixed = options("safetensors");
  const auto images_of = [&](ImageSource source, std::int64_t n, const char* name) {
    mixed.recipe.images.source = source;
    mixed.images = n;
    const auto report = generate(model(), mixed, out(name));
    EXPECT_EQ(report.images, n);
    return models::to_tensor(
        *formats::find(formats::read_safetensors(report.files[0]).tensors, "images"));
  };
  const auto all = images_of(ImageSource::mixture, 20, "a");
  EXPECT_TRUE(all.slice(0, 0, 10).equal(images_of(ImageSource::optimised, 10, "b")));
  // Other leaves than those of the seed, which optimised images may start from.
  EXPECT_FALSE(all.slice(0, 10).equal(images_of(ImageSource::dead_leaves, 10, "c")));
  EXPECT_LT(all.slice(0, 10).min().item<float>(), 0);
}

TEST_F(Generate, AllFormsHoldTheSameImages) {
  generate(model(), options("safetensors"), out("bank"));
  const auto bank = formats::read_safetensors(out("bank") / "bank.safetensors").tensors;
  const auto& images = *formats::find(bank, "images");
  const auto& labels = *formats::find(bank, "labels");

  generate(model(), options("npy"), out("npy"));
  EXPECT_TRUE(formats::read_npy(out("npy") / "images.npy").data == images.data);
  EXPECT_TRUE(formats::read_npy(out("npy") / "labels.npy").data == labels.data);

  const GenerateReport npz = generate(model(), options("npz"), out("npz"));
  const auto arrays = formats::read_npz(out("npz") / "images.npz");
  EXPECT_TRUE(formats::find(arrays, "images")->data == images.data);
  // `zsq eval` reads it.
  EvaluateOptions evaluation;
  evaluation.data.eval_data = out("npz") / "images.npz";
  evaluation.data.preset = "cifar10";
  EXPECT_NEAR(evaluate(model(), evaluation).top1, 100 * npz.label_agreement, 1e-6);

  generate(model(), options("ort"), out("ort"));
  EXPECT_EQ(names_in(out("ort")).size(), 20u);
  const auto input = formats::read_file(out("ort") / "test_data_set_7" / "input_0.pb");
  const std::size_t bytes = std::size_t{3} * 16 * 16 * 4;
  ASSERT_GT(input.size(), bytes);  // the elements come last
  EXPECT_EQ(std::memcmp(input.data() + input.size() - bytes, images.data.data() + 7 * bytes, bytes),
            0);
  EXPECT_TRUE(fs::exists(out("ort") / "test_data_set_7" / "output_0.pb"));
}

TEST_F(Generate, PngIsAnImageFolder) {
  const GenerateReport report = generate(model(), options("png"), out("png"));
  const auto names = names_in(out("png"));
  EXPECT_EQ(names.size(), 9u);  // 8 classes
  EXPECT_EQ(names.front(), "0");
  EXPECT_EQ(names.back(), "synsets.txt");
  std::size_t images = 0;
  for (const auto& entry : fs::recursive_directory_iterator(out("png")))
    images += entry.path().extension() == ".png" ? 1 : 0;
  EXPECT_EQ(images, 20u);
  EXPECT_EQ(code_of([&] { generate(model(), options("png"), out("png")); }), ErrorCode::usage);
  EXPECT_EQ(code_of([&] { generate(model(), options("png", ""), out("x")); }), ErrorCode::usage);
}

TEST_F(Generate, PngOfASuperposedImageNamesBothClasses) {
  auto superposed = options("png");
  superposed.recipe.images.source = ImageSource::generator;
  superposed.recipe.images.steps = 0;
  superposed.recipe.generate.superposed_share = 1;
  generate(model(), superposed, out("superposed"));
  std::size_t images = 0;
  for (const auto& entry : fs::recursive_directory_iterator(out("superposed"))) {
    if (entry.path().extension() != ".png") continue;
    ++images;
    const std::string name = entry.path().stem();  // of 20 images, of 8 classes: 07_3
    ASSERT_EQ(name.size(), 4u) << name;
    EXPECT_EQ(name[2], '_');
    EXPECT_NE(name.substr(3), entry.path().parent_path().filename()) << name;
  }
  EXPECT_EQ(images, 20u);
}

TEST_F(Generate, WithoutAPresetPixelsAreFree) {
  const auto largest = [&](const std::string& preset, const std::string& folder) {
    generate(model(), options("npy", preset), out(folder));
    return models::to_tensor(formats::read_npy(out(folder) / "images.npy"))
        .abs()
        .max()
        .item<double>();
  };
  EXPECT_LE(largest("cifar10", "held"), (1 - 0.406) / 0.225 + 1e-6);
  EXPECT_GT(largest("", "free"), (1 - 0.406) / 0.225 + 1e-6);
}

TEST_F(Generate, LeavesNothingWhereItIsStopped) {
  class Impatient : public Observer {
    bool stop_requested() override { return steps_++ > 70; }  // in the second batch
    int steps_ = 0;
  } impatient;
  EXPECT_EQ(code_of([&] { generate(model(), options("ort"), out("x"), &impatient); }),
            ErrorCode::stopped);
  EXPECT_TRUE(names_in(out("x")).empty());
}

TEST_F(Generate, SaysWhatIsWrongBeforeTheWork) {
  const auto refused = [&](const std::string& form, const fs::path& folder) {
    try {
      generate(model(), options(form), folder);
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.code()), 2);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("safetensor", out("x")).find("did you mean 'safetensors'"), std::string::npos);
  std::ofstream(root() / "file") << "x";
  EXPECT_NE(refused("npz", root() / "file" / "below").find("output folder"), std::string::npos);
}

TEST_F(Generate, ABankTrainsAStudent) {
  generate(model(), options("safetensors"), out("bank"));
  const auto weights = [&](const std::string& name, std::vector<std::string> settings) {
    for (const char* setting :
         {"finetune.iterations=6", "finetune.batch_size=8", "finetune.warmup=0.5",
          "quantize.activations.calibration_images=16", "process.agreement_images=0",
          "process.threads=1", "export.onnx=false"})
      settings.emplace_back(setting);
    QuantizeOptions quantization;
    quantization.recipe = load_recipe("deploy", settings);
    quantize(model(), quantization, out(name));
    return formats::read_file(out(name) / "model.safetensors");
  };
  const std::string bank = "generate.bank=" + (out("bank") / "bank.safetensors").string();
  const auto with = weights("with", {bank, "generate.bank_share=0.5"});
  EXPECT_TRUE(with == weights("again", {bank, "generate.bank_share=0.5"}));
  EXPECT_FALSE(with == weights("without", {}));
  EXPECT_EQ(code_of([&] { weights("x", {bank}); }), ErrorCode::usage);
  EXPECT_EQ(code_of([&] { weights("x", {"generate.bank_share=0.5"}); }), ErrorCode::usage);
  // Without a generator: all images of the bank, or images made for it.
  const auto tuned = [&](const std::string& name, std::vector<std::string> settings) {
    settings.emplace_back("finetune.images=16");
    return weights(name, settings);
  };
  const auto of_bank = tuned("of_bank", {bank});
  EXPECT_TRUE(of_bank == tuned("of_bank_again", {bank}));
  EXPECT_FALSE(of_bank == with);
  EXPECT_FALSE(of_bank == tuned("made", {"generate.images.steps=2"}));
  EXPECT_EQ(code_of([&] { tuned("x", {bank, "generate.bank_share=0.5"}); }), ErrorCode::usage);
}

}  // namespace
}  // namespace zsq::generate_test
