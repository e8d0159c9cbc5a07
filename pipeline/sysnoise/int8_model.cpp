// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sysnoise/int8_model.h"

#include <system_error>

#include "pipeline/quantize.h"
#include "pipeline/session/session.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "zsq-XXXXXX").string()) {
    if (!::mkdtemp(path_.data()))
      throw Error(ErrorCode::bad_input, "cannot make a folder in " +
                                            fs::temp_directory_path().string() +
                                            " for the int8 model; set TMPDIR to one that can be "
                                            "written");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Hands on the wish to stop, and nothing else.
class Quiet : public Observer {
 public:
  explicit Quiet(Observer& observer) : observer_(observer) {}
  bool stop_requested() override { return observer_.stop_requested(); }

 private:
  Observer& observer_;
};

}  // namespace

models::Model int8_model(const models::Model& model, const EvaluateOptions& options,
                         Observer& observer) {
  observer.on_message(LogLevel::info, "quantizing to W8A8 by the recipe 'instant'");
  QuantizeOptions job;
  job.recipe = load_recipe("instant", {"process.agreement_images=0"});
  job.recipe.model = options.model;
  job.recipe.process.threads = options.process.threads;
  job.recipe.process.device = options.process.device;
  static_cast<PreprocessingOptions&>(job.recipe.data) = options.data;
  job.scheme = Scheme::parse("W8A8");
  const TemporaryFolder folder;
  Quiet quiet(observer);
  quantize(model.source_path, job, folder.path(), &quiet);
  return load_any(folder.path(), options.model, options.process.device);
}

}  // namespace zsq::pipeline
