// SPDX-License-Identifier: Apache-2.0
// What the page of a run shows, and what it leaves out. tests/cli/report_test.cpp opens pages in a
// browser.
#include "pipeline/report/page.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "pipeline/quantize.h"
#include "pipeline/report.h"
#include "pipeline/report/latency.h"
#include "pipeline/report/sections.h"
#include "pipeline/session/format.h"
#include "tests/support/temp_folder.h"

namespace zsq::pipeline {
namespace {

LayerResult layer(const std::string& name, std::int64_t bits, double sqnr) {
  LayerResult layer;
  layer.name = name;
  layer.op = "Conv2d";
  layer.weight_bits = bits;
  layer.activation_bits = 8;
  layer.crossings = 0.00125;
  layer.weight_sqnr = 20;
  layer.output_sqnr = sqnr;
  layer.weight_range = {-0.25, 0.75};
  layer.input_range = Range{0, 6};
  layer.executes_as = "int8";
  return layer;
}

QuantizeReport untrained() {
  QuantizeReport report;
  report.model = "nets/net.onnx";
  report.scheme = "W4A4";
  report.recipe = "instant";
  report.tool_version = "9.9";
  report.source_sha256 = "00ff";
  report.fp32_bytes = 2'000'000;
  report.quantized_bytes = 250'000;
  report.layers = {layer("conv1", 8, 30.5), layer("conv2", 4, 12.25)};
  report.layers[0].reason = "needs no words";
  return report;
}

QuantizeReport trained() {
  QuantizeReport report = untrained();
  report.iterations = 400;
  report.agreement = 0.75;
  report.divergence = 0.125;
  report.synthetic = {{"dead_leaves", 64, 0.25, 0.5}, {"optimised", 64, 0.0625, 1}};
  report.verdict = "a little worse than the float network: runs lost 1 to 3 points";
  report.costliest_layer = "conv2";
  report.stages = {{"calibration", 1, 2, "kept", {}},
                   {"fine-tuning", 10, 12, "kept", report.synthetic}};
  report.mixed = MixedResult{"size", 300000, 250000, 0.01};
  report.mixed->sensitivity = {{"conv1", {{2, 0.5}, {4, 0.125}}, {}},
                               {"conv2", {{2, 2}, {4, 0.25}}, {}}};
  return report;
}

class Page : public ::testing::Test {
 protected:
  std::string page_of(const QuantizeReport& report, const std::string& history = "") const {
    folder_.file("report.json", to_json(report));
    folder_.file(kHistoryFile, history);
    return run_page(read_run(folder_.path()));
  }
  static bool holds(const std::string& page, const std::string& text) {
    return page.find(text) != std::string::npos;
  }
  const test::TempFolder folder_;
};

TEST_F(Page, LeavesOutWhatARunDoesNotHave) {
  const std::string page = page_of(untrained());
  for (const char* title : {"Generated images", "Curves", "Stages", "Bit allocation",
                            "Crossings per step", "needs no words", ">Why<"})
    EXPECT_FALSE(holds(page, title)) << title;
  for (const char* title : {"Not measured", "Size, latency and accuracy", "Layers", "Sensitivity"})
    EXPECT_TRUE(holds(page, title)) << title;
}

TEST_F(Page, SaysHowMuchIsComputedInFloat) {
  QuantizeReport report = untrained();
  const char* words = "of the multiply-accumulates are in float";
  EXPECT_FALSE(holds(page_of(report), words));
  report.float_share = 0;
  EXPECT_FALSE(holds(page_of(report), words));
  report.float_share = 0.023;
  EXPECT_TRUE(holds(page_of(report), std::string("2.3 % ") + words));
}

TEST_F(Page, TheVerdictComesFirst) {
  std::string curve, samples;
  for (int step = 1; step <= 4; ++step)
    curve += to_line({1, "fine-tune", step, 4, 0, {{"loss_student", 1.0 / step}}});
  std::filesystem::create_directories(folder_ / "samples");
  folder_.file("samples/0000004.png", "PNG!");
  samples = to_line({1, kSamplesPhase, 4, 4, 0, {}, "samples/0000004.png"}) +
            to_line({1, kSamplesPhase, 9, 4, 0, {}, "samples/gone.png"});
  const std::string page = page_of(trained(), curve + samples);
  std::size_t last = 0;
  for (const char* part :
       {"A little worse than the float network", "Runs lost 1 to 3 points.", "75.0 %", "0.1250",
        "8.0 times smaller", "Size, latency and accuracy", "2 of 2 layers run in integers",
        "Generated images", "base64,UE5HIQ==", "Iteration 4", ">Curves<", ">Loss of the student<",
        ">Stages<", ">Layers<", ">Sensitivity<", "conv2 costs most", "Bit allocation",
        "chosen for a budget of 300.0 kB, of which 250.0 kB", ">Settings<"}) {
    const std::size_t at = page.find(part, last);
    ASSERT_NE(at, std::string::npos) << part;
    last = at;
  }
  EXPECT_FALSE(holds(page, "Iteration 9"));
}

TEST_F(Page, ShowsTheLatencyThatWasMeasured) {
  const auto has = [&](const QuantizeReport& report, const char* text) {
    return holds(page_of(report), text);
  };
  QuantizeReport weights = untrained();
  EXPECT_TRUE(
      has(weights, "A run measures no latency. <code>scripts/bench_runtimes.py nets/net.onnx "));
  weights.model = "nets/net.pth";  // which no runtime reads
  EXPECT_TRUE(has(weights, "bench_runtimes.py FLOAT.onnx "));
  EXPECT_TRUE(has(weights, "this network as ONNX"));
  folder_.file(kLatencyFile, R"({"machine": "A & B", "threads": 2, "rows": [
      {"runtime": "onnxruntime", "batch": 1, "float_ms": 3, "ms": 1.5},
      {"runtime": "onnxruntime", "batch": 16, "float_ms": 2, "ms": 0.5},
      {"runtime": "openvino", "batch": 1, "float_ms": 2.5, "ms": 2}]})");
  const std::string page = page_of(untrained());
  EXPECT_FALSE(holds(page, "A run measures no latency"));
  for (const char* text : {"Latency, onnxruntime, one image", "Latency, openvino, one image",
                           "3.000 ms", "1.500 ms", ">4.00</td>", "A &amp; B, 2 threads"})
    EXPECT_TRUE(holds(page, text)) << text;
  EXPECT_FALSE(holds(page, "16 images"));  // in the table, not as a chart
  folder_.file(kLatencyFile, "{");
  EXPECT_THROW(page_of(untrained()), Error);
}

TEST_F(Page, RunsWithLatencyAreComparedByIt) {
  const test::TempFolder one, two;
  for (const auto* run : {&one, &two}) {
    run->file("report.json", to_json(trained()));
    run->file(kLatencyFile, R"({"rows": [{"runtime": "onnxruntime", "batch": 1, "float_ms": 3,
                                          "ms": 1.25}]})");
  }
  const RunsReport both = report_runs({one.path(), two.path()}, "");
  EXPECT_TRUE(holds(both.text, "Latency, ms (onnxruntime, one image)"));
  EXPECT_TRUE(holds(both.text, "1.250"));
  EXPECT_TRUE(holds(both.html, "KL against latency"));
  EXPECT_TRUE(holds(both.html, "KL against size"));
  std::filesystem::remove(two / kLatencyFile);
  EXPECT_FALSE(holds(report_runs({one.path(), two.path()}, "").html, "against latency"));
}

TEST_F(Page, RealImagesSayMoreThanSyntheticOnes) {
  QuantizeReport report = trained();
  report.teacher = Accuracy{92.5, 99, 1000};
  report.student = Accuracy{90.25, 98, 1000};
  const std::string page = page_of(report);
  EXPECT_TRUE(holds(page, "verdict fair\"><strong>Loses 2.25 points of top-1<"));
  EXPECT_TRUE(holds(page, "90.25 % instead of 92.50 % on 1000 real images."));
  EXPECT_TRUE(holds(page, ">Top-1 on real images<"));
  report.student->top1 = 92.75;
  EXPECT_TRUE(holds(page_of(report), "verdict good\"><strong>As accurate as the float network<"));
}

TEST_F(Page, TellsOfEveryLayer) {
  const std::string page = page_of(trained());
  EXPECT_TRUE(holds(page,
                    "<tr><th scope=\"row\">conv2</th><td>Conv2d</td><td class=\"number\">4</td>"
                    "<td class=\"number\">8</td><td class=\"number\">-0.25 to 0.75</td>"
                    "<td class=\"number\">0 to 6</td><td class=\"number\">20.0</td>"
                    "<td class=\"number\">12.2</td><td class=\"number\">1.25e-03</td>"
                    "<td>int8</td></tr>"))
      << page;
}

TEST_F(Page, SettingsThatDifferFromTheRecipeComeFirst) {
  folder_.file("resolved.yaml", to_yaml(load_recipe("instant", {"process.seed=41"})));
  const std::string page = page_of(untrained());
  EXPECT_TRUE(holds(page, "<th scope=\"row\">process.seed</th><td>41</td><td>0</td>"));
  const std::size_t details = page.find("<details>");
  ASSERT_NE(details, std::string::npos);
  EXPECT_LT(page.find(">process.seed<"), details);
  EXPECT_EQ(page.find(">process.seed<", details), std::string::npos);
  EXPECT_NE(page.find(">finetune.iterations<", details), std::string::npos);
}

TEST_F(Page, NamesWhatIsNoRun) {
  folder_.file("report.json", R"({"tool_version": "0.0.1", "scheme": "W4A4"})");
  try {
    read_run(folder_.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_TRUE(holds(error.what(), "version 0.0.1 wrote it")) << error.what();
  }
  // Parts of another version may be missing, or of another type.
  folder_.file("report.json",
               R"({"source_sha256": "", "model": "m", "scheme": "W4A4", "recipe": "r",
    "size": {}, "layers": [{}, 3, {"name": "x", "weight_range": "wide"}], "stages": 4,
    "mixed": {"sensitivity": [{"weights": []}]}, "kept": {}, "synthetic": [null]})");
  EXPECT_TRUE(holds(run_page(read_run(folder_.path())), ">x<"));
}

TEST(PageParts, EscapeWhatTheyAreGiven) {
  const std::string html =
      page("<b>", section("&", paragraph("\"<i>\"")) + verdict_box("good", "<u>", "<s>"));
  for (const char* tag : {"<b>", "<i>", "<u>", "<s>"})
    EXPECT_EQ(html.find(tag), std::string::npos) << tag;
  EXPECT_EQ(section("title", ""), "");
  EXPECT_EQ(bytes_in_words(1234), "1.2 kB");
  EXPECT_EQ(bytes_in_words(2.5e6), "2.50 MB");
}

}  // namespace
}  // namespace zsq::pipeline
