// SPDX-License-Identifier: Apache-2.0
// A step of a deployment pipeline, in C++17: quantizes each network that lies in a folder and hands
// it back in another one, with the fewest bits that pass an accuracy gate.
//   folder_pipeline INBOX OUTBOX [KEY=VALUE...]
// INBOX/net.onnx becomes OUTBOX/net/, complete at once, or OUTBOX/net.error. The gate is 90 %
// agreement with the original on held-out synthetic images. Settings are those of recipes. Each
// network runs on a thread of its own, while the main thread shows progress and cancels on Ctrl-C
// (exit code 75).
#include <zsq/pipeline/quantize.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
constexpr double kMinAgreement = 90;  // per cent

volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) { interrupted = 1; }

// What the thread that quantizes and the one that watches share.
class Watched : public zsq::Observer {
 public:
  void on_progress(const zsq::Progress& p) override {
    const std::lock_guard lock(mutex_);
    text_ = p.phase + " " + std::to_string(p.step) + "/" + std::to_string(p.total);
  }
  bool stop_requested() override { return cancelled_; }

  void cancel() { cancelled_ = true; }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::atomic<bool> cancelled_{false};
};

zsq::QuantizeReport quantize(const fs::path& model, const fs::path& output,
                             const zsq::QuantizeOptions& options) {
  Watched watched;
  auto result = std::async(std::launch::async,
                           [&] { return zsq::quantize(model, options, output, &watched); });
  std::string shown;
  while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    if (interrupted) watched.cancel();
    const std::string text = watched.text();
    if (text != shown) std::cout << "  " << text << std::endl;
    shown = text;
  }
  return result.get();
}

// More bits until the gate lets the network through.
void serve(const fs::path& model, const fs::path& outbox, const zsq::Recipe& recipe) {
  const std::string stem = model.stem().string();
  const fs::path unfinished = outbox / ("." + stem);
  for (const char* scheme : {"W4A4", "W6A6", "W8A8"}) {
    zsq::QuantizeOptions options;
    options.recipe = recipe;
    options.scheme = zsq::Scheme::parse(scheme);
    options.min_agreement = kMinAgreement;
    std::cout << stem << " at " << scheme << std::endl;
    try {
      const zsq::QuantizeReport report = quantize(model, unfinished, options);
      std::cout << "  " << 100 * report.agreement.value_or(0) << " % agreement\n";
      return fs::rename(unfinished, outbox / stem);
    } catch (const zsq::Error& error) {
      std::cout << "  " << error.what() << std::endl;
      if (error.code() != zsq::ErrorCode::accuracy_gate || scheme == std::string("W8A8")) throw;
    }
  }
}

void serve_all(const fs::path& inbox, const fs::path& outbox, const zsq::Recipe& recipe) {
  fs::create_directories(outbox);
  for (const auto& entry : fs::directory_iterator(inbox)) {
    const fs::path result = outbox / entry.path().stem();
    const fs::path failed = result.string() + ".error";
    if (entry.path().extension() != ".onnx" || fs::exists(result) || fs::exists(failed)) continue;
    try {
      serve(entry.path(), outbox, recipe);
    } catch (const zsq::Error& error) {
      if (error.code() == zsq::ErrorCode::stopped) throw;
      std::ofstream(failed) << error.what() << "\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: folder_pipeline INBOX OUTBOX [KEY=VALUE...]\n";
    return 2;
  }
  std::signal(SIGINT, interrupt);
  try {
    // A service calls this again whenever a file has arrived; what is handed back is skipped.
    serve_all(argv[1], argv[2],
              zsq::load_recipe("instant", std::vector<std::string>(argv + 3, argv + argc)));
    return 0;
  } catch (const zsq::Error& error) {
    std::cerr << error.what() << "\n";
    return zsq::exit_code(error.code());
  } catch (const fs::filesystem_error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
