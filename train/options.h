// SPDX-License-Identifier: Apache-2.0
// How the student is fine-tuned (AIT, arXiv 2203.17008). Torch-free; recipe keys "finetune.*".
#pragma once
#include <cstdint>
#include <vector>

#include "core/settings.h"
#include "losses/options.h"
#include "models/precision.h"

namespace zsq {

enum class Inundation { exact, published, off };
enum class KlReduction { batchmean, mean };
enum class LearnableScales { none, activations, all };
enum class Optimizer { nesterov, adam };

template <>
struct EnumNames<Inundation> {
  static constexpr std::array<std::string_view, 3> names{"exact", "published", "off"};
};
template <>
struct EnumNames<KlReduction> {
  static constexpr std::array<std::string_view, 2> names{"batchmean", "mean"};
};

template <>
struct EnumNames<LearnableScales> {
  static constexpr std::array<std::string_view, 3> names{"none", "activations", "all"};
};

template <>
struct EnumNames<Optimizer> {
  static constexpr std::array<std::string_view, 2> names{"nesterov", "adam"};
};

struct TrainOptions {
  std::int64_t iterations = 80000;  // warm-up included; one = a generator step and a student step
  std::int64_t batch_size = 200;
  std::int64_t images = 0;                          // 0: a generator makes them
  double warmup = 0.01;                             // share of the run
  std::vector<double> milestones{0.25, 0.5, 0.75};  // shares of the run where rates drop
  double decay = 0.1;                               // factor at each milestone
  std::int64_t teacher_views = 1;
  double temperature = 20;
  KlReduction kl_reduction = KlReduction::batchmean;
  std::vector<LossWeight> loss_terms{{LossTerm::kl_divergence, 1}};
  double perturbation = 0.01;  // of the images of a second pass
  double easy_difficulty = 0.5;
  double reliable_entropy = 0.3, unreliable_weight = 0.5;
  double low_pass_cutoff = 0;  // of the student's images; 0: none
  Optimizer optimizer = Optimizer::nesterov;
  double lr = 1e-4;         // conv and linear weights
  double affine_lr = 1e-5;  // BatchNorm gamma and beta, biases
  double momentum = 0.9;
  Inundation inundation = Inundation::exact;
  double crossing_rate = 1e-3;  // T
  double k_max = 1e4, c_max = 1;
  LearnableScales learnable_scales = LearnableScales::none;
  double scale_lr = 1e-3;
  std::int64_t validation_checks = 0;  // 0: the last state is the result
  std::int64_t validation_images = 256;
  double backtracking = 1;    // 1: none
  double max_skipped = 0.05;  // share of steps with non-finite gradients that stops the run
  Precision precision = Precision::fp32;
  bool cuda_graphs = true;  // see train/graph_step.h
};

// How a step moves the weights.
template <class Visitor, class Options>
void visit_update_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"finetune.optimizer",
                    "of weights, gamma, beta and biases. adam needs inundation=off, and its rates "
                    "are relative: lr in scales of the weight's grid, affine_lr in sizes of gamma",
                    "", 0, 0, "arXiv 1412.6980"},
        o.optimizer);
  visit(SettingInfo{"finetune.lr", "learning rate of conv and linear weights", "", 0, 10}, o.lr);
  visit(SettingInfo{"finetune.affine_lr", "learning rate of BatchNorm gamma, beta and biases", "",
                    0, 10},
        o.affine_lr);
  visit(SettingInfo{"finetune.momentum", "Nesterov momentum", "", 0, 0.9999}, o.momentum);
  visit(
      SettingInfo{"finetune.inundation", "exact, the published search, or off", "", 0, 0, "AIT 4"},
      o.inundation);
  visit(SettingInfo{"finetune.crossing_rate", "T, share of a layer's codes that a step changes", "",
                    0, 1, "AIT 4"},
        o.crossing_rate);
  visit(SettingInfo{"finetune.k_max", "largest factor on a layer's step", "", 1, 1e12}, o.k_max);
  visit(SettingInfo{"finetune.c_max", "largest move of one weight", "scales", 1e-3, 1e6}, o.c_max);
  visit(SettingInfo{"finetune.learnable_scales",
                    "quantizers below 8 bits with learnable scales: none, activations, or all "
                    "(weights with fixed ranges too)",
                    "", 0, 0, "LSQ, arXiv 1902.08153"},
        o.learnable_scales);
  visit(SettingInfo{"finetune.scale_lr", "learning rate of scales: relative change in a step", "",
                    0, 1},
        o.scale_lr);
}

template <class Visitor, class Options>
void visit_loss_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"finetune.teacher_views",
                    "views of each image over which the teacher's logits are averaged: the image, "
                    "and others that are moved by up to two pixels, every second one mirrored "
                    "unless generate.images.flip is false or the network tells mirrored images "
                    "apart",
                    "views", 1, 64, "data distillation, arXiv 1712.04440"},
        o.teacher_views);
  visit(SettingInfo{"finetune.temperature", "tau of the KL divergence", "", 1e-3, 1e3, "AIT 3"},
        o.temperature);
  visit(
      SettingInfo{"finetune.kl_reduction", "batchmean, or mean over classes too (published code)"},
      o.kl_reduction);
  visit(SettingInfo{"finetune.loss_terms",
                    "terms of the student's loss (name=weight): KL divergence of the logits; "
                    "feature_mse, relative_feature_mse (each map relative to its variance) and "
                    "channel_attention compare maps at residual additions and ends of stages; "
                    "perturbed_kl_divergence is on images that are made harder; "
                    "easy_cross_entropy counts images of low difficulty; grad_cam compares class "
                    "activation maps; pseudo_label_cross_entropy takes labels from the teacher",
                    "weight", 0, 1e9, "AIT 3; PLF; HAST"},
        o.loss_terms);
  visit(SettingInfo{"finetune.perturbation",
                    "epsilon of perturbed_kl_divergence: images move by it in each pixel, along "
                    "the sign of the gradient of the other terms",
                    "", 0, 10, "HAST"},
        o.perturbation);
  visit(SettingInfo{"finetune.easy_difficulty",
                    "largest difficulty, 1 - p of the label by the teacher, of an image that "
                    "easy_cross_entropy counts",
                    "", 0, 1, "SynQ"},
        o.easy_difficulty);
  visit(SettingInfo{"finetune.reliable_entropy",
                    "largest entropy of the teacher's prediction, as a share of log(classes), at "
                    "which pseudo_label_cross_entropy takes one label and not two",
                    "", 0, 1, "PLF"},
        o.reliable_entropy);
  visit(SettingInfo{"finetune.unreliable_weight",
                    "weight of images with two labels in pseudo_label_cross_entropy", "", 0, 100,
                    "PLF"},
        o.unreliable_weight);
}

template <class Visitor, class Options>
void visit_train_settings(Visitor&& visit, Options& o) {
  visit(
      SettingInfo{"finetune.iterations",
                  "iterations of one generator and one student step, warm-up included", "", 0, 1e9},
      o.iterations);
  visit(SettingInfo{"finetune.batch_size", "images per step", "images", 2, 65536}, o.batch_size);
  visit(SettingInfo{"finetune.images",
                    "images that the student learns from, of generate.bank or made by "
                    "generate.images; 0: a generator makes them, which learns meanwhile",
                    "images", 0, 1e6},
        o.images);
  visit(SettingInfo{"finetune.warmup", "share of the run in which only the generator is trained",
                    "", 0, 1},
        o.warmup);
  visit(SettingInfo{"finetune.milestones", "shares of the run where the rates drop", "", 0, 1},
        o.milestones);
  visit(SettingInfo{"finetune.decay", "factor on learning and crossing rates at a milestone", "", 0,
                    1},
        o.decay);
  visit_loss_settings(visit, o);
  visit(SettingInfo{"finetune.low_pass_cutoff",
                    "width of the Gaussian low-pass filter on the spectrum of the student's "
                    "images; 0: none",
                    "periods per image", 0, 1e4, "SynQ"},
        o.low_pass_cutoff);
  visit_update_settings(visit, o);
  visit(
      SettingInfo{"finetune.validation_checks",
                  "number of validations on held-out synthetic images during training, besides the "
                  "one at its start; the best checkpoint is the result. 0: the last state is",
                  "", 0, 1e6},
      o.validation_checks);
  visit(SettingInfo{"finetune.validation_images", "images of a validation", "images", 1, 1e6},
        o.validation_images);
  visit(SettingInfo{"finetune.backtracking",
                    "where a validation finds the student worse than the best one, it goes back to "
                    "that and all its rates are multiplied by this; 1: it goes on as it is",
                    "", 1e-3, 1},
        o.backtracking);
  visit(SettingInfo{"finetune.max_skipped", "share of skipped steps that stops the run", "", 0, 1},
        o.max_skipped);
  visit(
      SettingInfo{
          "finetune.precision",
          "precision of teacher, student and generator in training: fp32, tf32 (GPU) or bf16"},
      o.precision);
  visit(
      SettingInfo{
          "finetune.cuda_graphs",
          "on a GPU, launch each half of an iteration as one recorded CUDA graph, where it can be "
          "recorded"},
      o.cuda_graphs);
}

}  // namespace zsq
