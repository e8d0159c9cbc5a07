# SPDX-License-Identifier: Apache-2.0
"""zsq.quantize: the bytes of the program, errors, progress, and what stopping leaves."""
import logging
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import tiny
from tiny import SHORT, TRAINED

import zsq
from zsq import _program

ZSQ = _program.find()


def program(*words):
    return subprocess.run([ZSQ, *map(str, words)], capture_output=True, text=True)


def flags(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


class WithRuns(tiny.WithFolder):
    def quantize(self, output="out", settings=SHORT, **more):
        more = {"recipe": "instant", "progress": False, **more}
        return zsq.quantize(more.pop("model", self.model), output=self.folder / output, settings=settings, **more)

    def bytes_of(self, output, name="model.onnx"):
        return (self.folder / output / name).read_bytes()


class Quantize(WithRuns):
    def assert_refused(self, exit_code, part, **more):
        with self.assertRaises(zsq.ZsqError) as raised:
            self.quantize(**more)
        self.assertEqual(raised.exception.exit_code, exit_code)
        self.assertIn(part, str(raised.exception))
        return raised.exception

    def test_the_program_gives_the_same_bytes(self):
        for scheme, seed in (("W8A8", 0), ("W4A4", 3)):
            report = self.quantize(scheme=scheme, seed=seed)
            said = program("quantize", self.model, "--scheme", scheme, "--seed", seed, "--recipe", "instant", "-o",
                           self.folder / "shell", *flags(SHORT))
            self.assertEqual(said.returncode, 0, said.stderr)
            for name in ("model.onnx", "model.safetensors"):
                self.assertEqual(self.bytes_of("out", name), self.bytes_of("shell", name), (scheme, name))
            self.assertEqual((report["scheme"], report["seed"]), (scheme, seed))

    def test_an_effort_stands_for_a_recipe(self):
        report = self.quantize(scheme="W4A8", recipe=None, effort="minute")
        self.assertEqual((report["recipe"], report["scheme"]), ("instant+gptq+tables+channel_correction", "W4A8"))
        self.assert_refused(2, "effort chooses a recipe", effort="minute")
        self.assert_refused(2, "'hour' is not an effort", recipe=None, effort="hour")

    def test_a_model_in_memory_is_kept_beside_its_result(self):
        self.quantize("file")
        report = self.quantize("memory", model=tiny.network())
        self.assertEqual(self.bytes_of("file"), self.bytes_of("memory"))
        self.assertEqual(report["model"], str(self.folder / "memory/original.onnx"))
        self.assertTrue((self.folder / "memory/original.onnx").exists())

    def test_a_folder_is_named_after_model_and_scheme(self):
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        report = zsq.quantize(self.model, "W4A8", recipe="instant", progress=False, settings=SHORT)
        self.assertEqual(str(report.path), "tiny-W4A8/model.onnx")
        self.assertTrue(report.path.exists() and report.page.exists())

    def test_errors_have_the_words_and_codes_of_the_program(self):
        missing = self.folder / "missing.onnx"
        error = self.assert_refused(2, "missing.onnx", model=missing)
        said = program("quantize", missing, "--scheme", "W8A8", "-o", self.folder / "x", *flags(SHORT))
        self.assertEqual(f"zsq: {error}", said.stderr.strip().splitlines()[-1])
        self.assert_refused(2, "did you mean", settings={"finetune.iteratons": 3})
        self.assert_refused(2, "W9A9", scheme="W9A9")
        self.assert_refused(2, "no_such_recipe", recipe="no_such_recipe")

    def test_a_network_without_batch_norm_is_refused_where_it_is_required(self):
        self.assert_refused(4, "BatchNorm", model=tiny.network(batch_norm=False), require_bn=True)
        report = self.quantize(model=tiny.network(batch_norm=False))
        self.assertTrue(report.path.exists())

    def test_arguments_of_wrong_types_are_named(self):
        for more, part in (({"sede": 1}, "did you mean 'seed'"), ({"thread": 1}, "did you mean 'threads'"),
                           ({"model": 3}, "not int"), ({"example": 1}, "example")):
            with self.subTest(part), self.assertRaises(TypeError) as raised:
                self.quantize(**more)
            self.assertIn(part, str(raised.exception))

    def test_below_the_gate_there_is_a_report(self):
        error = self.assert_refused(3, "agreement", scheme="W2A2", min_agreement=100)
        self.assertEqual(error.report["scheme"], "W2A2")
        self.assertTrue(error.report.path.exists())

    def test_progress_comes_on_the_thread_of_the_caller(self):
        seen = []
        self.quantize(recipe="deploy", settings=TRAINED,
                      progress=lambda p: seen.append((p, threading.current_thread())))
        self.assertEqual({thread for _, thread in seen}, {threading.main_thread()})
        trained = [p for p, _ in seen if p.phase == "fine-tune"]
        self.assertEqual((trained[-1].step, trained[-1].total), (20, 20))
        self.assertTrue(trained[-1].metrics and trained[-1].seconds > 0)

    def test_messages_are_logged(self):
        with self.assertLogs("zsq", logging.INFO) as logs:
            self.quantize()
        self.assertIn("loading", "\n".join(logs.output))


class Stopping(WithRuns):
    """Each way leaves no result and a checkpoint, from which a run goes on to the bytes of an unbroken one."""

    def stop(self, error, progress):
        with self.assertRaises(error) as raised:
            self.quantize(recipe="deploy", settings=TRAINED, progress=progress)
        self.assertFalse((self.folder / "out/model.onnx").exists())
        self.assertTrue((self.folder / "out/checkpoint").is_dir())
        return raised.exception

    def assert_resumes(self):
        self.quantize("unbroken", recipe="deploy", settings=TRAINED)
        self.quantize("out", recipe="deploy", settings=TRAINED, resume=True)
        self.assertEqual(self.bytes_of("out"), self.bytes_of("unbroken"))

    def test_a_callback_that_returns_false(self):
        error = self.stop(zsq.ZsqError, lambda p: not (p.phase == "fine-tune" and p.step == 15))
        self.assertEqual(error.exit_code, 75)
        self.assert_resumes()

    def test_keyboard_interrupt(self):
        def interrupt(p):
            if p.phase == "fine-tune" and p.step == 15:
                signal.raise_signal(signal.SIGINT)

        self.stop(KeyboardInterrupt, interrupt)
        self.assert_resumes()

    def test_an_exception_of_a_callback_reaches_the_caller(self):
        def fail(p):
            if p.phase == "fine-tune" and p.step == 15:
                raise StopIteration("mine")

        self.assertEqual(str(self.stop(StopIteration, fail)), "mine")


class Started(tiny.WithFolder):
    def run_python(self, *words, **environment):
        folder = pathlib.Path(zsq.__file__).parents[1]
        return subprocess.run([sys.executable, "-B", *map(str, words)], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(folder), **environment})

    def test_python_m_zsq_is_the_program(self):
        said = self.run_python("-m", "zsq", "--version")
        self.assertEqual((said.returncode, said.stdout), (0, program("--version").stdout))
        said = self.run_python("-m", "zsq", "quantise")
        self.assertEqual((said.returncode, said.stderr), (2, program("quantise").stderr))

    def test_a_library_that_is_not_there(self):
        code = "import zsq\ntry: zsq.inspect('x')\nexcept zsq.ZsqError as e: print(e.exit_code, e)"
        said = self.run_python("-c", code, ZSQ_LIBRARY="/nowhere/libzsq.so.0")
        self.assertTrue(said.stdout.startswith("2 libzsq.so.0 cannot be loaded: /nowhere"), said)

    def test_beside_torch_the_program_works(self):
        """In one process the two would share the state of a libtorch."""
        code = f"""
import sys, types, zsq
sys.modules["torch"] = types.SimpleNamespace(nn=types.SimpleNamespace(Module=int))
try:
    zsq.quantize({str(self.model)!r}, "W2A2", {str(self.folder / "out")!r}, recipe="instant", progress=False,
                 min_agreement=100, settings={SHORT!r})
except zsq.ZsqError as error:
    print(error.exit_code, error.report["scheme"], any("libzsq" in line for line in open("/proc/self/maps")))
"""
        said = self.run_python("-c", code)
        self.assertEqual(said.stdout, "3 W2A2 False\n", said.stderr)

    def test_importing_loads_neither_library_nor_torch(self):
        code = ("import sys, zsq; print('torch' in sys.modules, "
                "any('libzsq' in line for line in open('/proc/self/maps')))")
        self.assertEqual(self.run_python("-c", code).stdout, "False False\n")


if __name__ == "__main__":
    unittest.main()
