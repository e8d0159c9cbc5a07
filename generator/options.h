// SPDX-License-Identifier: Apache-2.0
// How images are made (Qimera, arXiv 2111.02625). Torch-free; recipe keys "generate.*".
#pragma once
#include <cstdint>
#include <string>

#include "core/settings.h"
#include "generator/statistics_options.h"

namespace zsq {

enum class Superposing { per_sample, whole_batch };
enum class MixWeights { softmax_normal, dirichlet };

template <>
struct EnumNames<Superposing> {
  static constexpr std::array<std::string_view, 2> names{"per_sample", "whole_batch"};
};
template <>
struct EnumNames<MixWeights> {
  static constexpr std::array<std::string_view, 2> names{"softmax_normal", "dirichlet"};
};

struct GeneratorOptions {
  Superposing superposing = Superposing::per_sample;
  double superposed_share = 0.4;       // p
  std::int64_t superposed_labels = 2;  // K; clamped to the number of classes
  MixWeights mix_weights = MixWeights::softmax_normal;
  double dirichlet_alpha = 1.0;
  // A mixture of K embeddings is sqrt(sum of squared weights) times as long as each of them:
  // without this, images of many labels hardly differ from one another.
  bool normalise_superposed = true;
  bool embeddings_from_classifier = true;  // EEI: rows of the last layer, else N(0, 1)
  bool train_embeddings = true;
  bool disentangle = true;        // linear map from the feature width to the latent width
  std::int64_t latent_width = 0;  // 0: 64 for images up to 32 pixels, else 100
  double noise_scale = 1.0;
  bool conditional_mix_average =
      false;  // published: divide the mixed gamma and beta by K once more
  double lr = 1e-3, beta1 = 0.5, beta2 = 0.999;
  double bns_weight = 0.1;  // lambda of L_G = CE + lambda * L_BNS
  StatisticsOptions statistics;
  std::string bank;         // file with images; empty: none
  double bank_share = 0;    // of each batch of the student
  double system_noise = 0;  // share of the student's images that a deployment has changed
  // Of the pixels of the generator's images, in units of the network's input; no settings: what a
  // run knows of the range of pixels decides them.
  double pixel_mean = 0, pixel_deviation = 1;
};

template <class Visitor, class Options>
void visit_generator_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"generate.superposing",
                    "whether each sample, or the whole batch at once, is superposed or not", "", 0,
                    0, "Qimera 4.1"},
        o.superposing);
  visit(SettingInfo{"generate.superposed_share", "p, share of superposed samples", "", 0, 1},
        o.superposed_share);
  visit(SettingInfo{"generate.superposed_labels", "K, labels in one superposed sample", "labels", 1,
                    100000},
        o.superposed_labels);
  visit(SettingInfo{"generate.mix_weights", "distribution of the mixing weights"}, o.mix_weights);
  visit(SettingInfo{"generate.dirichlet_alpha", "concentration of the Dirichlet weights", "", 1e-3,
                    1e3},
        o.dirichlet_alpha);
  visit(
      SettingInfo{"generate.normalise_superposed",
                  "scale a superposed embedding to the norm of a single one (published code: off)"},
      o.normalise_superposed);
  visit(SettingInfo{"generate.embeddings_from_classifier",
                    "start class embeddings from the rows of the last layer, linear or a 1x1 "
                    "convolution (EEI)"},
        o.embeddings_from_classifier);
  visit(SettingInfo{"generate.train_embeddings", "train the class embeddings"}, o.train_embeddings);
  visit(SettingInfo{"generate.disentangle", "linear map from feature width to latent width"},
        o.disentangle);
  visit(SettingInfo{"generate.latent_width", "width of the latent; 0: by image size", "", 0, 4096},
        o.latent_width);
  visit(SettingInfo{"generate.noise_scale", "standard deviation of the latent noise", "", 0, 10},
        o.noise_scale);
  visit(SettingInfo{"generate.conditional_mix_average",
                    "divide mixed conditional gamma and beta by K (published code)"},
        o.conditional_mix_average);
  visit(SettingInfo{"generate.lr", "Adam learning rate", "", 0, 1}, o.lr);
  visit(SettingInfo{"generate.beta1", "Adam beta1", "", 0, 0.9999}, o.beta1);
  visit(SettingInfo{"generate.beta2", "Adam beta2", "", 0, 0.99999}, o.beta2);
  visit(SettingInfo{"generate.bns_weight", "weight of the BatchNorm-statistics loss", "", 0, 1e3},
        o.bns_weight);
  visit_statistics_settings(
      visit, {"generate.statistics", "generate.bns_shallow_weight", "generate.bns_deep_weight"},
      o.statistics);
  visit(SettingInfo{"generate.bank",
                    "image bank (from `zsq generate --form safetensors`) used in addition to the "
                    "generator"},
        o.bank);
  visit(SettingInfo{"generate.bank_share", "share of each student batch taken from the bank", "", 0,
                    1},
        o.bank_share);
  visit(SettingInfo{"generate.system_noise",
                    "share of the student's images, in fine-tuning and where ranges are taken from "
                    "the generator, that are resized, sent through NV12 and rounded to 8 bits as a "
                    "deployment may do it, while the teacher answers the clean ones",
                    "", 0, 1, "SysNoise"},
        o.system_noise);
}

}  // namespace zsq
