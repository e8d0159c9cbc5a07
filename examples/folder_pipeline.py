#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step of a deployment pipeline, in Python by ctypes: quantizes each network that lies in a folder and
hands it back in another one, with the fewest bits that pass an accuracy gate.

folder_pipeline.py INBOX OUTBOX [KEY=VALUE...]

INBOX/net.onnx becomes OUTBOX/net/, complete at once, or OUTBOX/net.error. Settings are those of
zsq_job_set(); the gate is min_agreement=90 unless another one is given. Each network runs on a thread of
its own, while the main thread shows progress and cancels on Ctrl-C (exit code 75). ZSQ_LIBRARY names
libzsq.so.0 where the system does not find it.
"""
import ctypes
import json
import os
import pathlib
import signal
import sys
import threading

OK, USAGE, ACCURACY_GATE, STOPPED = 0, 2, 3, 75
interrupted = threading.Event()


class Progress(ctypes.Structure):
    _fields_ = [("phase", ctypes.c_char_p), ("step", ctypes.c_int64), ("total", ctypes.c_int64),
                ("seconds", ctypes.c_double), ("metrics", ctypes.c_size_t),
                ("metric_names", ctypes.POINTER(ctypes.c_char_p)),
                ("metric_values", ctypes.POINTER(ctypes.c_double))]


ON_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Progress))
Text = ctypes.POINTER(ctypes.c_char)  # unlike c_char_p it stays a pointer, which zsq_free() needs

zsq = ctypes.CDLL(os.environ.get("ZSQ_LIBRARY", "libzsq.so.0"))
JOB, TEXT, TEXT_OUT = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Text)
for name, result, *arguments in [
        ("zsq_free", None, Text),
        ("zsq_job_new", ctypes.c_int, TEXT, ctypes.POINTER(JOB), TEXT_OUT),
        ("zsq_job_free", None, JOB),
        ("zsq_job_set", ctypes.c_int, JOB, TEXT, TEXT, TEXT_OUT),
        ("zsq_job_on_progress", ctypes.c_int, JOB, ON_PROGRESS, ctypes.c_void_p, TEXT_OUT),
        ("zsq_job_cancel", None, JOB),
        ("zsq_quantize", ctypes.c_int, JOB, TEXT, TEXT, TEXT_OUT, TEXT_OUT)]:
    function = getattr(zsq, name)
    function.restype, function.argtypes = result, arguments


class Error(Exception):
    """A status other than 0, with its sentence."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def taken(text):
    """A string that the library gave, which is then released."""
    copy = ctypes.cast(text, ctypes.c_char_p).value.decode() if text else ""
    zsq.zsq_free(text)
    return copy


def call(function, *arguments):
    error = Text()
    status = function(*arguments, ctypes.byref(error))
    text = taken(error)
    if status != OK:
        raise Error(status, text)


class Job:
    """One run. The progress that its thread reports is in `progress`."""

    def __init__(self, recipe):
        self.handle, self.progress = JOB(), ""
        call(zsq.zsq_job_new, recipe.encode(), ctypes.byref(self.handle))
        self._callback = ON_PROGRESS(self._note)  # has to live as long as the job
        call(zsq.zsq_job_on_progress, self.handle, self._callback, None)

    def _note(self, _, progress):
        seen = progress.contents
        self.progress = f"{seen.phase.decode()} {seen.step}/{seen.total}"
        return 0

    def set(self, key, value):
        call(zsq.zsq_job_set, self.handle, key.encode(), value.encode())

    def cancel(self):
        zsq.zsq_job_cancel(self.handle)

    def quantize(self, model, output):
        text = Text()
        try:
            call(zsq.zsq_quantize, self.handle, os.fsencode(model), os.fsencode(output), ctypes.byref(text))
        finally:
            report = taken(text)  # there is one with ACCURACY_GATE, too
        return json.loads(report)

    def __del__(self):
        zsq.zsq_job_free(self.handle)


def quantize(model, output, scheme, settings):
    """The report. The job runs on a thread of its own, without Python's lock."""
    job, outcome = Job("instant"), {}
    for key, value in [("min_agreement", "90"), *settings, ("scheme", scheme)]:
        job.set(key, value)

    def run():
        try:
            outcome["report"] = job.quantize(model, output)
        except Error as error:
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    shown = ""
    while thread.is_alive():
        thread.join(0.05)
        if interrupted.is_set():
            job.cancel()
        if job.progress != shown:
            shown = job.progress
            print(" ", shown, flush=True)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["report"]


def serve(model, outbox, settings):
    """More bits until the gate lets the network through."""
    unfinished = outbox / f".{model.stem}"
    for scheme in ("W4A4", "W6A6", "W8A8"):
        print(model.stem, "at", scheme, flush=True)
        try:
            report = quantize(model, unfinished, scheme, settings)
            print(f"  {100 * report['agreement']:.1f} % agreement")
            unfinished.rename(outbox / model.stem)
            return
        except Error as error:
            print(" ", error)
            if error.status != ACCURACY_GATE or scheme == "W8A8":
                raise


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return USAGE
    inbox, outbox = map(pathlib.Path, sys.argv[1:3])
    settings = [tuple(word.partition("=")[::2]) for word in sys.argv[3:]]
    outbox.mkdir(exist_ok=True)
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    # A service calls this again whenever a file has arrived; what is handed back is skipped.
    for model in sorted(inbox.glob("*.onnx")):
        failed = outbox / f"{model.stem}.error"
        if (outbox / model.stem).exists() or failed.exists():
            continue
        try:
            serve(model, outbox, settings)
        except Error as error:
            if error.status == STOPPED:
                return STOPPED
            failed.write_text(f"{error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
