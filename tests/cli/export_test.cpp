// SPDX-License-Identifier: Apache-2.0
// A finished run as a file for another runtime.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zsq {
namespace {

using Json = nlohmann::json;

class Export : public Cli {
 protected:
  void quantize(const std::string& name, const std::string& flags = "") const {
    const Outcome outcome = run("quantize " + tiny().model.string() +
                                " --recipe instant --scheme W4A4 --preset cifar10 -o " +
                                path(name) + kShort + " " + flags);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  Json exported(const std::string& flags) const {
    const Outcome outcome = run("export " + path("out") + " " + flags + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  std::string eval(const std::string& model) const {
    const Outcome outcome =
        run("eval " + path(model) + " --data " + tiny().images.string() + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out).at("top1").dump();
  }
};

// From codes and scales alone, the file that the run itself wrote.
TEST_F(Export, TheRunsOwnTargetGivesItsOwnFile) {
  quantize("out");
  const Json json = exported("--target onnxruntime");
  EXPECT_EQ(text_of(path("out/model.onnxruntime.onnx")), text_of(path("out/model.onnx")));
  EXPECT_EQ(json.at("target"), "onnxruntime");
  EXPECT_EQ(json.at("file"), path("out/model.onnxruntime.onnx"));
  EXPECT_EQ(json.at("bytes"), fs::file_size(path("out/model.onnx")));
  EXPECT_EQ(json.at("integer_share"), 1.0);
  const Json report = Json::parse(text_of(path("out/report.json")));
  ASSERT_EQ(json.at("layers").size(), report.at("layers").size());
  for (std::size_t i = 0; i < json.at("layers").size(); ++i) {
    EXPECT_EQ(json.at("layers")[i].at("name"), report.at("layers")[i].at("name"));
    EXPECT_EQ(json.at("layers")[i].at("executes_as"), report.at("layers")[i].at("executes_as"));
    EXPECT_EQ(json.at("layers")[i].at("speed"), "fast");
  }
}

TEST_F(Export, EachTargetThatHoldsTheModelPredictsTheSame) {
  quantize("out");
  const std::string top1 = eval("out");
  for (const char* target : {"openvino", "generic", "qcdq"}) {
    exported(std::string("--target ") + target + " -o " + path("other.onnx"));
    EXPECT_EQ(eval("other.onnx"), top1) << target;
  }
  const Outcome table = run("export " + path("out") + " --target generic");
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* part : {"executes as", "speed", "why", "as float", "4-bit type", "fast",
                           "of the layers in integers", "model.generic.onnx"})
    EXPECT_NE(table.out.find(part), std::string::npos) << part << "\n" << table.out;
}

TEST_F(Export, TensorrtWantsItsOwnRunAndSaysHow) {
  quantize("out");
  expect_error(4, "export " + path("out") + " --target tensorrt",
               {"target tensorrt cannot hold", "input.quantizer: its 8-bit codes go from",
                "--recipe " + path("out/resolved.yaml"), "--set quantize.target=tensorrt"});
  EXPECT_FALSE(fs::exists(path("out/model.tensorrt.onnx")));
  const Outcome again =
      run("quantize " + tiny().model.string() + " --recipe " + path("out/resolved.yaml") +
          " --set quantize.target=tensorrt -o " + path("out_tensorrt"));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Json::parse(text_of(path("out_tensorrt/report.json"))).at("target"), "tensorrt");
  const Outcome exported = run("export " + path("out_tensorrt") + " --target tensorrt");
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(text_of(path("out_tensorrt/model.tensorrt.onnx")),
            text_of(path("out_tensorrt/model.onnx")));
}

TEST_F(Export, LitertGetsAFileOfItsOwn) {
  quantize("out");
  const Json json = exported("--target tflite");
  EXPECT_EQ(json.at("file"), path("out/model.tflite"));
  const std::string text = text_of(path("out/model.tflite"));
  EXPECT_EQ(text.substr(4, 4), "TFL3");
  EXPECT_NE(text.find("zsq.preprocessing"), std::string::npos) << "how images are prepared";
  for (const std::string& words :
       {"inspect " + path("out/model.tflite"),
        "eval " + path("out/model.tflite") + " --data " + tiny().images.string()})
    expect_error(2, words, {"is a file for LiteRT (.tflite), which zsq writes but does not read"});
}

TEST_F(Export, SaysWhatIsMissing) {
  expect_error(2, "export --target qcdq", {"FOLDER is missing"});
  expect_error(2, "export " + path("none"), {"--target NAME is missing", "tensorrt"});
  expect_error(2, "export " + path("none") + " --target tensort",
               {"'tensort' is not a target; did you mean 'tensorrt'?"});
  expect_error(2, "export " + path("none") + " --target qcdq", {"none", "report.json"});
  const fs::path model = folder_ / "network.onnx";
  fs::copy_file(tiny().model, model);
  const Outcome outcome = run("quantize " + model.string() +
                              " --recipe instant --preset cifar10 -o " + path("out") + kShort);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  fs::rename(model, folder_ / "moved.onnx");
  expect_error(2, "export " + path("out") + " --target qcdq",
               {"the float network", "is not there any more", "network.onnx", "--model"});
  expect_error(2, "export " + path("out") + " --target qcdq --model " + path("out/model.onnx"),
               {"is not the float network of"});
  exported("--target qcdq --model " + path("moved.onnx"));
  fs::remove(folder_ / "out/model.safetensors");
  expect_error(2, "export " + path("out") + " --target qcdq --model " + path("moved.onnx"),
               {"holds no model.safetensors", "export.safetensors=false"});
}

}  // namespace
}  // namespace zsq
