// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <ATen/Parallel.h>

#include <array>
#include <cstdio>

#include "core/error.h"
#include "core/stopwatch.h"
#include "quant/level_ranks.h"
#include "train/best_state.h"
#include "train/checkpoint.h"
#include "train/delayed_metrics.h"
#include "train/device_setup.h"
#include "train/images/image_bank.h"
#include "train/images/low_pass.h"
#include "train/images/system_noise.h"
#include "train/images/teacher_views.h"
#include "train/schedule.h"

namespace zsq::train {
namespace {

constexpr double kPartsShown = 6;  // of the schedule, at whose ends images are shown

// Warm-up is for a generator alone.
TrainOptions options_of(const TrainJob& job, bool generates) {
  TrainOptions options = job.options;
  if (!generates) options.warmup = 0;
  return options;
}

class FineTuning {
 public:
  FineTuning(const TrainJob& job, Observer& observer)
      : job_(job),
        generates_(!job.bank || !job.bank->whole()),
        options_(options_of(job, generates_)),
        observer_(observer),
        level_ranks_(job.student),
        step_(job.teacher, job.student, job.generator, job.options, job.ranks),
        graph_step_(step_, graph_maker(job), observer),
        views_(choose_views(job, observer)),
        best_(job.teacher, job.student, job.ranks),
        schedule_(options_, job.time_budget),
        metrics_(options_, read_every(job), tally_, observer, [this] { graph_step_.join(); }) {
    choose_convolutions(job, step_, observer);
    if (options_.validation_checks > 0 && job_.held_out.defined()) best_.hold_out(job_.held_out);
  }

  TrainReport operator()() {
    if (job_.resume) resume();
    begin_alike();
    if (job_.calibrated) take_over();
    if (job_.time_budget > 0) plan();
    while (schedule_.next(elapsed())) {
      stop_if_asked();
      schedule_.warming_up() ? warm_up() : fine_tune();
      if (job_.checkpoint_every > 0 && schedule_.done() % job_.checkpoint_every == 0) save_state();
    }
    metrics_.read();
    graph_step_.join();
    if (!tally_.calibrated) calibrate();
    if (best_.started() && best_.seen().checked_at != schedule_.done()) check();
    // So that a run that is stopped later, while its result is measured, can be resumed too.
    if (!job_.checkpoint.empty() && saved_at_ != schedule_.done()) save_state();
    keep_best();
    quant::refresh_weight_grids(job_.student);
    TrainReport result = report();
    level_ranks_.restore();
    return result;
  }

 private:
  // Broadcasts rank 0's state, because CPUs round differently.
  void begin_alike() const { parallel::take_from_first(job_.ranks, tensors_of(step_.state())); }

  double elapsed() const { return resumed_seconds_ + begin_.seconds(); }

  void plan() {
    const auto [images, student] = step_.rehearse([&] {
      constexpr auto kDraw = generator::Generator::kCalibrationSteps;
      return generates_ ? step_.generator_step(kDraw, 1) : next_batch(kDraw, 1);
    });
    schedule_.rehearsed(images, images + student);
    const auto to_calibrate = job_.student.options.activations.calibration_images;
    const auto batches = tally_.calibrated ? 0 : at::divup(to_calibrate, options_.batch_size);
    after_ = job_.seconds_after();
    const auto held_out =
        job_.held_out.defined() ? job_.held_out.size(0) : options_.validation_images;
    const double reserved = static_cast<double>(batches) * images + after_ +
                            seconds_of_checks(options_, held_out, student);
    schedule_.reserve(reserved);
    const bool any = schedule_.next(elapsed());
    const auto left = static_cast<long long>(schedule_.total() - schedule_.done());
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "the time budget leaves %lld iterations of about %.3g s, and %.3g s for all else",
                  left, images + student, reserved);
    observer_.on_message(any ? LogLevel::info : LogLevel::warning, text.data());
  }

  void warm_up() {
    const Stopwatch begin;
    const double factor = rate_factor(options_, schedule_.share());
    const auto batch =
        graph_step_.generator_step(static_cast<std::uint64_t>(schedule_.done()), factor);
    const auto numbers = metrics_.numbers_of(batch);
    schedule_.warmup_took(begin.seconds());
    metrics_.add(kWarmUp, schedule_, factor, numbers);
    tally_.warmup_seconds += begin.seconds();
    show(batch.images);
  }

  void fine_tune() {
    if (!tally_.calibrated) calibrate();
    if (options_.validation_checks > 0 && !best_.started()) begin_checks();
    const auto checks = checks_done();
    const Stopwatch begin;
    const double factor = rate_factor(options_, schedule_.share());
    const double student_factor = factor * tally_.student_rate;
    const auto iteration = static_cast<std::uint64_t>(schedule_.done());
    auto batch = next_batch(iteration, factor);
    batch = low_pass(batch, options_.low_pass_cutoff, job_.teacher, step_.feature_nodes(),
                     options_.precision);
    batch.logits =
        views_.mean_logits(batch, job_.teacher, options_.precision, iteration, step_.rows());
    if (job_.noise) batch.images = (*job_.noise)(batch.images, iteration, step_.rows());
    const auto student = graph_step_.student_step(batch, student_factor);
    at::Tensor of_student;
    graph_step_.on_student_stream([&] { of_student = metrics_.numbers_of(student); });
    const auto of_generator = generates_ ? metrics_.numbers_of(batch) : at::Tensor();
    schedule_.finetune_took(begin.seconds());
    metrics_.add(kFineTune, schedule_, student_factor, of_generator, of_student);
    show(generated_);
    if (checks_done() > checks) {
      check();
      backtrack();
    }
  }

  // For the student; the generator learns on the way, if there is one.
  Batch next_batch(std::uint64_t iteration, double factor) {
    const auto& features = step_.feature_nodes();
    if (!generates_) return job_.bank->batch(job_.teacher, features, iteration, step_.rows());
    auto batch = graph_step_.generator_step(iteration, factor);
    generated_ = batch.images;
    return job_.bank ? job_.bank->mixed(batch, job_.teacher, features, iteration, step_.rows())
                     : batch;
  }

  std::int64_t parts_done() const {
    if (schedule_.done() == 0) return -1;
    return static_cast<std::int64_t>(kPartsShown * schedule_.share() + 1e-9);
  }

  void show(const at::Tensor& images) {
    if (job_.on_images && images.defined() && parts_done() > shown_)
      job_.on_images(schedule_.done(), images);
    shown_ = parts_done();
  }

  void begin_checks() {
    if (!best_.has_images())
      best_.hold_out(held_out_images(job_.generator, options_.validation_images));
    check();
  }

  // At equal parts of the fine-tuning, besides the one at its start.
  std::int64_t checks_done() const {
    const double tuned = (schedule_.share() - options_.warmup) / (1 - options_.warmup);
    return static_cast<std::int64_t>(tuned * static_cast<double>(options_.validation_checks));
  }

  void check() {
    graph_step_.join();
    best_.check(schedule_.done());
    const auto& seen = best_.seen();
    observer_.on_measurement({"validation",
                              schedule_.done(),
                              schedule_.total(),
                              elapsed(),
                              {{"kl", seen.last.kl}, {"agreement", seen.last.agreement}}});
    if (job_.time_budget <= 0) return;
    schedule_.reserve(after_ + seen.seconds / static_cast<double>(seen.checks) *
                                   static_cast<double>(options_.validation_checks - checks_done()));
  }

  // Rates that are too large for the student lose what it started with.
  void backtrack() {
    if (options_.backtracking == 1 || best_.seen().iteration == schedule_.done()) return;
    best_.put_back();
    step_.restart_student();
    tally_.student_rate *= options_.backtracking;
  }

  void keep_best() {
    if (!best_.started()) return;
    best_.put_back();
    observer_.on_message(LogLevel::info, in_words(best_.seen(), schedule_.done()));
  }

  // Ranges are there; the checkpoint saves what they took.
  void take_over() {
    step_.learnable_scales();
    tally_.calibrated = true;
    if (!job_.checkpoint.empty()) save_state();
  }

  void calibrate() {
    metrics_.read();
    const Stopwatch begin;
    observer_.on_message(LogLevel::info, "calibrating activation ranges on generated images");
    step_.calibrate(job_.bank, job_.noise);
    begin_alike();
    tally_.calibrated = true;
    tally_.warmup_seconds += begin.seconds();
    if (job_.time_budget > 0) schedule_.reserve(after_ = job_.seconds_after());
    metrics_.begin_phase();
  }

  void stop_if_asked() {
    if (!parallel::on_any(job_.ranks, observer_.stop_requested())) return;
    metrics_.read();
    if (!job_.checkpoint.empty()) save_state();
    throw Error(ErrorCode::stopped,
                "stopped after " + std::to_string(schedule_.done()) + " of " +
                    std::to_string(schedule_.total()) + " iterations" +
                    (job_.checkpoint.empty() ? "; nothing was saved"
                                             : "; the same command with --resume goes on from '" +
                                                   job_.checkpoint.string() + "'"));
  }

  void save_state() {
    metrics_.read();
    graph_step_.join();
    tally_.iterations = saved_at_ = schedule_.done();
    tally_.share = schedule_.share();
    tally_.seconds = elapsed();
    auto tensors = step_.state();
    parallel::require_same(job_.ranks, tensors,
                           "checkpoint after " + std::to_string(schedule_.done()) + " iterations");
    if (!parallel::is_first(job_.ranks)) return;
    for (auto& named : best_.state()) tensors.push_back(std::move(named));
    save(job_.checkpoint, {std::move(tensors), tally_, settings_of(job_)});
  }

  void resume() {
    const auto checkpoint = load(job_.checkpoint, settings_of(job_), device_of(job_));
    step_.load(best_.load(checkpoint.tensors), checkpoint.tally.calibrated);
    tally_ = checkpoint.tally;
    resumed_seconds_ = tally_.seconds;
    saved_at_ = tally_.iterations;
    schedule_ = Schedule(options_, job_.time_budget, tally_.iterations, tally_.share);
    shown_ = parts_done();
  }

  TrainReport report() const {
    return {.iterations = schedule_.done(),
            .skipped = tally_.skipped,
            .seconds = elapsed(),
            .warmup_seconds = tally_.warmup_seconds,
            .loss_generator = tally_.mean_loss_generator(),
            .loss_student = tally_.mean_loss_student(),
            .layers = step_.weight_steps().report(),
            .kept = best_.started() ? std::optional(best_.seen()) : std::nullopt};
  }

  const TrainJob& job_;
  const bool generates_;  // some images of each batch
  const TrainOptions options_;
  Observer& observer_;
  quant::LevelRanks level_ranks_;
  Step step_;
  GraphStep graph_step_;
  const TeacherViews views_;
  BestState best_;
  Schedule schedule_;
  Tally tally_;
  DelayedMetrics metrics_;
  Stopwatch begin_;
  at::Tensor generated_;                    // the generator's last images
  double resumed_seconds_ = 0, after_ = 0;  // the latter: what follows the run will take
  std::int64_t saved_at_ = -1;              // iterations in the checkpoint
  std::int64_t shown_ = -1;                 // parts of the schedule
};

}  // namespace

TrainReport run(const TrainJob& job, Observer& observer) {
  if (job.checkpoint.empty() && (job.resume || job.checkpoint_every > 0))
    throw Error(ErrorCode::usage, "checkpoints and resuming need the path of a checkpoint");
  if (job.time_budget > 0 && parallel::several(job.ranks))
    throw Error(ErrorCode::usage,
                "several ranks need a number of iterations, no time budget: their clocks differ");
  return FineTuning(job, observer)();
}

}  // namespace zsq::train
