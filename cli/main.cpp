// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "cli/manual_page.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/nearest_name.h"
#include "launch/ranks.h"
#include "pipeline/session/tensor_memory.h"
#include "pipeline/version.h"

namespace zsq::cli {
namespace {

struct Verb {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
  bool splits = false;  // its work over the ranks of a launcher
};

constexpr Verb kVerbs[] = {
    {"inspect", "layers, BatchNorm verdict and what of a model can be quantized", inspect},
    {"quantize", "a trained CNN in, a quantized model and its report out; no data needed", quantize,
     true},
    {"eval", "top-1 and top-5 of a float or quantized model", eval},
    {"generate", "synthetic images of a model's classes, for this or any other tool", generate,
     true},
    {"export", "the model of a finished run for another runtime, and how that executes each layer",
     export_verb},
    {"check", "whether runtimes on this machine compute what was measured of a run, and how fast",
     check},
    {"run", "class and score per image, or a comparison with stored arrays", run},
    {"report", "finished runs side by side, as tables and as a page", report},
    {"select", "ranks finished runs by nearness to the original, without real images", select},
    {"compare", "per-layer difference of two models, worst first", compare},
    {"reproduce", "a table of runs, row by row and seed by seed, as an ablation", reproduce},
    {"analyze", "analyses of AIT and Qimera on your network: tables and pictures", analyze},
    {"bench", "time of kernels and of a training step, beside what this machine can do", bench},
    {"recipes", "the built-in recipes and their settings", recipes},
};

constexpr const char* kExitCodes =
    "0 ok, 1 internal error, 2 usage or input, 3 accuracy gate missed, 4 unsupported\n"
    "model, 5 out of memory, 75 stopped and can be resumed\n";

void print_help(std::ostream& out) {
  out << "usage: zsq VERB ...   (zsq VERB --help tells more)\n\n";
  for (const Verb& verb : kVerbs)
    out << "  " << verb.name << std::string(10 - std::string(verb.name).size(), ' ') << verb.summary
        << "\n";
  out << "\n  --version  versions of this program and of what it was built with\n"
         "  --manual   all of this and the flags of each verb, as a manual page\n\nExit codes: "
      << kExitCodes;
}

void print_manual() {
  std::cout << ".TH ZSQ 1 \"\" \"zsq " << version() << "\"\n.SH NAME\n"
            << "zsq \\- zero\\-shot quantization of image classifiers\n"
            << ".SH SYNOPSIS\n.B zsq\n.I VERB\n[\\fIARGUMENT\\fR ...]\n"
            << ".SH DESCRIPTION\nQuantizes a trained convolutional classifier without its training "
               "data.\nFlags may be written with dashes or underscores; every verb prints its own "
               "with\n.BR \\-\\-help .\n.SH VERBS\n";
  for (const Verb& verb : kVerbs) {
    std::cout << ".SS " << verb.name << "\n" << roff(verb.summary) << "\n";
    verb.run({"--manual"});
  }
  std::cout << ".SH EXIT STATUS\n" << kExitCodes;
}

int dispatch(const Arguments& words) {
  if (words.empty()) {
    print_help(std::cerr);
    return exit_code(ErrorCode::usage);
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help(std::cout);
    return 0;
  }
  if (words[0] == "--version") {
    std::cout << version_details() << "MPI " << launch::mpi_version() << "\n";
    return 0;
  }
  if (words[0] == "--manual") {
    print_manual();
    return 0;
  }
  std::vector<std::string> known;
  for (const Verb& verb : kVerbs) {
    if (words[0] == verb.name) {
      if (verb.splits) launch::join(words);
      return verb.run({words.begin() + 1, words.end()});
    }
    known.emplace_back(verb.name);
  }
  throw Error(ErrorCode::usage, unknown_name_message("verb", words[0], known));
}

// A result that nobody got is no success.
void require_output_written() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error(ErrorCode::bad_input,
              "the result did not get through to standard output: is it closed, or its disk full?");
}

// Ranks that are stopped are so together, and rank 0 may have a checkpoint to write; any other
// error ends them all at once.
int fail(ErrorCode code, const std::string& message) {
  constexpr double kToWrite = 120;  // seconds
  const int result = exit_code(code);
  if (code != ErrorCode::stopped) {
    launch::abandon(result, message);
    return result;
  }
  if (launch::is_first()) std::cerr << "zsq: " << message << "\n";
  return launch::leave(result, kToWrite);
}

// libtorch takes 0.06 s to free what the system takes back at once. Tools that count lines or look
// for errors write their results at a regular exit.
int end(int code) {
#if !defined(ZSQ_REGULAR_EXIT) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}

}  // namespace
}  // namespace zsq::cli

int main(int argc, char** argv) {
  // Training frees and takes the same blocks at every step; handing them back to the system each
  // time costs a page fault per 4 kB.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  zsq::keep_freed_tensors();
  // A write beyond the file size limit is to fail with a message, as one to a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = zsq::cli::dispatch({argv + 1, argv + argc});
    zsq::cli::require_output_written();
    return zsq::cli::end(zsq::launch::leave(code));
  } catch (const zsq::Error& error) {
    return zsq::cli::end(zsq::cli::fail(error.code(), error.what()));
  } catch (const std::exception& error) {
    return zsq::cli::end(
        zsq::cli::fail(zsq::ErrorCode::internal, std::string("internal error: ") + error.what()));
  }
}
