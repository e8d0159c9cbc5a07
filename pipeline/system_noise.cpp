// SPDX-License-Identifier: Apache-2.0
#include "pipeline/system_noise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <sstream>

#include "core/choice.h"
#include "core/stopwatch.h"
#include "eval/evaluate.h"
#include "pipeline/report/json.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "pipeline/sysnoise/int8_model.h"
#include "pipeline/sysnoise/sign_test.h"
#include "pipeline/sysnoise/variants.h"
#include "train/agreement.h"

namespace zsq {
namespace {

using models::Model;
using pipeline::Variant;
using Models = std::vector<Model>;  // the model, then the one to compare with if there is one

constexpr auto kSources = [] {
  std::array<NoiseSource, EnumNames<NoiseSource>::names.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<NoiseSource>(i);
  return all;
}();

std::string name_of(NoiseSource source) { return std::string(enum_name(source)); }

// What one model says to all images.
struct Answers {
  at::Tensor logits;   // f32 [images, classes]
  at::Tensor correct;  // bool [images]

  double top1() const { return 100 * correct.to(at::kDouble).mean().item<double>(); }
};

std::int64_t count(const at::Tensor& images) { return images.sum().item<std::int64_t>(); }

NoiseEffect effect(const Answers& reference, const Answers& changed) {
  const auto seen =
      train::compare_outputs(models::OutputKind::logits, reference.logits, changed.logits);
  NoiseEffect result;
  result.top1 = changed.top1();
  result.drop = reference.top1() - result.top1;
  result.flips = 100 * (1 - seen.agreement);
  result.divergence = seen.kl;
  result.worse = count(reference.correct.logical_and(changed.correct.logical_not()));
  result.better = count(changed.correct.logical_and(reference.correct.logical_not()));
  result.p_value = pipeline::sign_test(result.worse, result.better);
  return result;
}

// Which sources this data cannot show, and why; empty: it can.
std::string fixed(NoiseSource source, const eval::Preprocessing& reference,
                  const eval::ImageSource& images, const DataOptions& data) {
  if (source != NoiseSource::decode && source != NoiseSource::resize &&
      source != NoiseSource::colour)
    return "";
  if (std::filesystem::path(data.eval_data).extension() == ".npz")
    return "the images are preprocessed already";
  if (source == NoiseSource::decode && !eval::holds_encoded_images(images))
    return "the images are not encoded";
  if (source == NoiseSource::resize && reference.crop_order == CropOrder::none)
    return "the images are not resized";
  return "";
}

class Measurement {
 public:
  Measurement(const std::filesystem::path& path, const SystemNoiseOptions& options,
              Observer& observer)
      : evaluation_(options.evaluation), observer_(observer), data_(evaluation_.data) {
    if (data_.eval_data.empty())
      throw Error(ErrorCode::usage, "system noise is measured on data: --data FOLDER_OR_FILE");
    const Device device = pipeline::start_process(evaluation_.process, observer);
    models_.push_back(pipeline::load_any(path, evaluation_.model, device));
    if (!options.against.empty())
      models_.push_back(pipeline::load_any(options.against, evaluation_.model, device));
    if (!pipeline::resolve_preprocessing(models_.front(), data_, observer))
      pipeline::resolve_preprocessing(models_.back(), data_, observer);
    evaluation_.data = data_;
    sources_ = options.sources;
    if (sources_.empty()) sources_.assign(kSources.begin(), kSources.end());
    result_.model = path.string();
    result_.against = options.against.string();
    result_.data = data_.eval_data;
    result_.preset = data_.preset;
    result_.preprocessing = pipeline::preprocessing_record(data_);
  }

  SystemNoiseReport run() && {
    const Stopwatch begin;
    reference_ = answers({NoiseSource::decode, "as trained"});
    result_.images = reference_.front().correct.size(0);
    result_.top1 = reference_.front().top1();
    if (reference_.size() > 1) result_.against_top1 = reference_[1].top1();
    const double seconds = begin.seconds();
    const auto variants = all_variants();
    std::ostringstream text;
    text << variants.size() << " options, about "
         << static_cast<std::int64_t>(seconds * static_cast<double>(variants.size()) + 1) << " s";
    observer_.on_message(LogLevel::info, text.str());
    for (const NoiseSource source : sources_) measure(source, variants);
    combine();
    result_.seconds = begin.seconds();
    return std::move(result_);
  }

 private:
  std::vector<Variant> all_variants() {
    const auto reference = eval::resolve(data_, {});
    const auto images = eval::open_data(data_.eval_data, reference);
    const auto int8 = [this](const Model& model) {
      return pipeline::int8_model(model, evaluation_, observer_);
    };
    std::vector<Variant> result;
    for (const NoiseSource source : sources_) {
      if (const auto why = fixed(source, reference, *images, data_); !why.empty()) {
        result_.skipped.push_back(name_of(source) + ": " + why);
        continue;
      }
      std::ranges::move(pipeline::image_variants(source, reference), std::back_inserter(result));
      std::ranges::move(pipeline::model_variants(source, int8), std::back_inserter(result));
    }
    return result;
  }

  // Images are decoded once for all models.
  std::vector<Answers> answers(const Variant& variant) const {
    Models changed = models_;
    if (variant.rewrite)
      for (Model& model : changed) model = variant.rewrite(model);
    DataOptions data = data_;
    static_cast<PreprocessingOptions&>(data) = eval::overlay(data_, variant.keys);
    // It would keep the images once more for each option.
    if (eval::is_given(variant.keys)) data.eval_cache.clear();
    const auto images = eval::open_data(data, observer_);
    std::vector<std::vector<at::Tensor>> logits(changed.size());
    const auto ask = [&](const at::Tensor& batch) {
      for (std::size_t i = 0; i < changed.size(); ++i)
        logits[i].push_back(
            pipeline::logits_on_device(changed[i].graph, changed[i].parameters, batch));
      return logits[0].back();
    };
    const auto first = images->load(0, 1);
    pipeline::require_input_shape(changed[0], first.images, data.eval_data);
    pipeline::require_classes(first.labels, data.eval_data);
    const auto seen = eval::evaluate(ask, *images, data, observer_, changed[0].parameters.device());
    std::vector<Answers> result;
    for (const auto& batches : logits) {
      const auto all = at::cat(batches).to(at::kCPU);
      result.push_back({all, all.argmax(1).eq(seen.labels)});
    }
    return result;
  }

  NoiseOption compared(const Variant& variant) const {
    const auto seen = answers(variant);
    NoiseOption result{name_of(variant.source), variant.option, effect(reference_[0], seen[0]), {}};
    if (seen.size() > 1) result.against = effect(reference_[1], seen[1]);
    return result;
  }

  // All options of a source, and what they do together.
  void measure(NoiseSource source, const std::vector<Variant>& variants) {
    NoiseSummary summary{name_of(source)};
    const Variant* worst = nullptr;
    double divergence = -1;
    for (const Variant& variant : variants) {
      if (variant.source != source) continue;
      observer_.on_message(LogLevel::info, summary.source + ": " + variant.option);
      try {
        result_.options.push_back(compared(variant));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported_model) throw;
        result_.skipped.push_back(summary.source + " " + variant.option + ": " + error.what());
        continue;
      }
      const NoiseEffect& seen = result_.options.back().effect;
      summary.max_drop = summary.options ? std::max(summary.max_drop, seen.drop) : seen.drop;
      summary.max_flips = std::max(summary.max_flips, seen.flips);
      ++summary.options;
      const auto n = static_cast<double>(summary.options);
      summary.mean_drop += (seen.drop - summary.mean_drop) / n;
      summary.mean_flips += (seen.flips - summary.mean_flips) / n;
      if (seen.divergence > divergence) worst = &variant;
      divergence = std::max(divergence, seen.divergence);
    }
    if (!worst) return;
    result_.summaries.push_back(std::move(summary));
    worst_.push_back(*worst);
  }

  // Precision comes before the graph is rewritten: int8 begins from the model's file.
  void combine() {
    if (worst_.size() < 2) return;
    Variant all{NoiseSource::decode, ""};
    for (const Variant& variant : worst_) {
      all.option += (all.option.empty() ? "" : ", ") + variant.option;
      all.keys = eval::overlay(all.keys, variant.keys);
      if (!variant.rewrite) continue;
      all.rewrite = [first = all.rewrite, then = variant.rewrite](const Model& model) {
        return then(first ? first(model) : model);
      };
    }
    observer_.on_message(LogLevel::info, "combined: " + all.option);
    result_.combined = compared(all);
    result_.combined->source = "combined";
  }

  EvaluateOptions evaluation_;
  Observer& observer_;
  DataOptions data_;
  Models models_;
  std::vector<NoiseSource> sources_;
  std::vector<Answers> reference_;
  std::vector<Variant> worst_;
  SystemNoiseReport result_;
};

pipeline::Json json(const NoiseEffect& effect) {
  return {{"top1", effect.top1},      {"drop", effect.drop},
          {"flips", effect.flips},    {"divergence", effect.divergence},
          {"worse", effect.worse},    {"better", effect.better},
          {"p_value", effect.p_value}};
}

pipeline::Json json(const NoiseOption& option) {
  return {{"source", option.source},
          {"option", option.option},
          {"effect", json(option.effect)},
          {"against", option.against ? json(*option.against) : pipeline::Json(nullptr)}};
}

}  // namespace

SystemNoiseReport measure_system_noise(const std::filesystem::path& model,
                                       const SystemNoiseOptions& options, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return Measurement(model, options, observer ? *observer : silent).run(); });
}

std::vector<NoiseSource> parse_noise_sources(const std::string& text) {
  if (text == "all") return {};
  std::vector<NoiseSource> result;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    result.push_back(choice<NoiseSource>("source of system noise", word));
  if (result.empty())
    throw Error(ErrorCode::usage,
                "--sysnoise names no source; give all, or a list as decode,resize");
  // In the order in which a combination applies them.
  std::ranges::sort(result);
  const auto twice = std::ranges::unique(result);
  result.erase(twice.begin(), twice.end());
  return result;
}

std::string to_json(const SystemNoiseReport& report) {
  auto options = pipeline::Json::array(), summaries = pipeline::Json::array();
  for (const auto& option : report.options) options.push_back(json(option));
  for (const auto& s : report.summaries)
    summaries.push_back({{"source", s.source},
                         {"options", s.options},
                         {"mean_drop", s.mean_drop},
                         {"max_drop", s.max_drop},
                         {"mean_flips", s.mean_flips},
                         {"max_flips", s.max_flips}});
  return pipeline::dump(
      {{"model", report.model},
       {"against",
        report.against.empty() ? pipeline::Json(nullptr) : pipeline::Json(report.against)},
       {"data", report.data},
       {"preset", report.preset},
       {"preprocessing", pipeline::json_or_null(report.preprocessing)},
       {"images", report.images},
       {"top1", report.top1},
       {"against_top1",
        report.against_top1 ? pipeline::Json(*report.against_top1) : pipeline::Json(nullptr)},
       {"options", options},
       {"summaries", summaries},
       {"combined", report.combined ? json(*report.combined) : pipeline::Json(nullptr)},
       {"skipped", report.skipped},
       {"seconds", report.seconds}});
}

}  // namespace zsq
