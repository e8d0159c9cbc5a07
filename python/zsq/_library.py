# SPDX-License-Identifier: Apache-2.0
"""The C interface of libzsq (zsq/zsq.h) by ctypes: which library is loaded, and one job of it."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import os
import pathlib
import queue
import threading
from typing import Any, Callable, Iterator, List, Mapping, Optional, Union

from ._errors import INTERNAL, USAGE, ZsqError
from ._progress import Progress, Viewer

NAME = "libzsq.so.0"
PACKAGE = pathlib.Path(__file__).resolve().parent
OK = 0
LOG = logging.getLogger("zsq")
LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)  # by zsq_level


class _Progress(ctypes.Structure):
    """zsq_progress."""

    _fields_ = [("phase", ctypes.c_char_p), ("step", ctypes.c_int64), ("total", ctypes.c_int64),
                ("seconds", ctypes.c_double), ("metrics", ctypes.c_size_t),
                ("metric_names", ctypes.POINTER(ctypes.c_char_p)),
                ("metric_values", ctypes.POINTER(ctypes.c_double))]


_ON_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Progress))
_ON_MESSAGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
_Text = ctypes.POINTER(ctypes.c_char)  # unlike c_char_p it stays a pointer, which zsq_free() needs
_JOB, _TEXT, _TEXT_OUT = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(_Text)
_FUNCTIONS: List[Any] = [
    ("zsq_version", ctypes.c_char_p),
    ("zsq_free", None, _Text),
    ("zsq_job_new", ctypes.c_int, _TEXT, ctypes.POINTER(_JOB), _TEXT_OUT),
    ("zsq_job_free", None, _JOB),
    ("zsq_job_set", ctypes.c_int, _JOB, _TEXT, _TEXT, _TEXT_OUT),
    ("zsq_job_on_progress", ctypes.c_int, _JOB, _ON_PROGRESS, ctypes.c_void_p, _TEXT_OUT),
    ("zsq_job_on_message", ctypes.c_int, _JOB, _ON_MESSAGE, ctypes.c_void_p, _TEXT_OUT),
    ("zsq_job_cancel", None, _JOB),
    ("zsq_quantize", ctypes.c_int, _JOB, _TEXT, _TEXT, _TEXT_OUT, _TEXT_OUT),
    ("zsq_inspect", ctypes.c_int, _JOB, _TEXT, _TEXT_OUT, _TEXT_OUT),
    ("zsq_evaluate", ctypes.c_int, _JOB, _TEXT, _TEXT_OUT, _TEXT_OUT)]


def find() -> str:
    """ZSQ_LIBRARY, else the library of the wheel, of the source tree, or of the system."""
    named = os.environ.get("ZSQ_LIBRARY")
    if named:
        return named
    builds = PACKAGE.parents[1] / "build"
    for folder in (PACKAGE / "lib", builds / "release/sdk", builds / "cpu-release/sdk"):
        if (folder / NAME).exists():
            return str(folder / NAME)
    return NAME


@contextlib.contextmanager
def _bounded_waiting() -> Iterator[None]:
    """As the program has it (docs/performance.md, "Waiting threads"): on a busy machine runs take several times as long
    without. libgomp reads the variable once, when it is loaded.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "2000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


@functools.lru_cache(maxsize=None)
def load() -> Any:
    """The library, with the types of its functions."""
    path = find()
    try:
        with _bounded_waiting():
            library = ctypes.CDLL(path)
    except OSError as error:
        raise ZsqError(f"{NAME} cannot be loaded: {error}; build the target zsq_c, install the package of zsq, or name "
                       "the library by the environment variable ZSQ_LIBRARY", USAGE) from error
    for name, result, *arguments in _FUNCTIONS:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def version() -> str:
    """Of the library: "0.2.0"."""
    return str(load().zsq_version().decode())


def _taken(text: Any) -> str:
    """A string that the library gave, which is then released."""
    copy = ctypes.cast(text, ctypes.c_char_p).value if text else None
    load().zsq_free(text)
    return copy.decode() if copy is not None else ""


class Job:
    """One run: settings first, then quantize(), inspect() or evaluate(), once."""

    def __init__(self, recipe: Optional[Union[str, os.PathLike[str]]], settings: Mapping[str, str]) -> None:
        self._library, self._handle = load(), _JOB()
        self._events: "queue.SimpleQueue[Optional[Callable[[], object]]]" = queue.SimpleQueue()  # None: done
        self._on_progress = _ON_PROGRESS(self._note_progress)  # the two live as long as the job
        self._on_message = _ON_MESSAGE(self._note_message)
        self._viewer, self._ending = Viewer(), False
        self._call("zsq_job_new", None if recipe is None else os.fsencode(recipe), ctypes.byref(self._handle))
        for key, value in settings.items():
            self._call("zsq_job_set", self._handle, key.encode(), os.fsencode(value))
        self._call("zsq_job_on_progress", self._handle, self._on_progress, None)
        self._call("zsq_job_on_message", self._handle, self._on_message, None)

    def __del__(self) -> None:
        if self._handle:
            self._library.zsq_job_free(self._handle)

    def _call(self, name: str, *arguments: Any) -> None:
        error = _Text()
        status = getattr(self._library, name)(*arguments, ctypes.byref(error))
        message = _taken(error)
        if status != OK:
            raise ZsqError(message, status)

    def _note_progress(self, _: Any, progress: Any) -> int:
        p = progress.contents
        metrics = {p.metric_names[i].decode(): p.metric_values[i] for i in range(p.metrics)}
        seen = Progress(p.phase.decode(), p.step, p.total, p.seconds, metrics)
        shown, answer = threading.Event(), [False]

        def show() -> None:
            answer[0] = self._viewer.show(seen)
            shown.set()

        self._events.put(show)
        while not shown.wait(0.05):  # so that the run stops at the iteration at which a callback asks for it
            if self._ending:
                return 1
        return 0 if answer[0] else 1

    def _note_message(self, _: Any, level: int, text: bytes) -> None:
        said = text.decode(errors="replace")
        self._events.put(lambda: LOG.log(LEVELS[level], "%s", said))

    def run(self, name: str, *arguments: Union[str, os.PathLike[str]], show: Viewer) -> str:
        """The JSON that the function gives.

        It works on a thread of its own; this one shows how far it is. KeyboardInterrupt, and an exception of a
        callback, cancel the job, wait for its next safe point and then go on. A second KeyboardInterrupt does not
        wait, but the process ends only after that point.
        """
        self._viewer = show
        outcome: List[Union[str, ZsqError]] = []

        def work() -> None:
            report = _Text()
            try:
                self._call(name, self._handle, *map(os.fsencode, arguments), ctypes.byref(report))
                outcome.append(_taken(report))
            except ZsqError as error:
                _taken(report)  # there is one below an accuracy gate, as there is report.json
                outcome.append(error)
            finally:
                self._events.put(None)

        thread = threading.Thread(target=work, name="zsq")
        try:
            thread.start()
            self._show_events()
        except BaseException:
            self._ending = True
            self._library.zsq_job_cancel(self._handle)
            thread.join()
            raise
        finally:
            show.close()
        thread.join()
        if not outcome:
            raise ZsqError("the thread of the run ended without a result", INTERNAL)
        if isinstance(outcome[0], ZsqError):
            raise outcome[0]
        return outcome[0]

    def _show_events(self) -> None:
        """Until the job is done. The timeout lets a signal that another thread received through."""
        while True:
            try:
                event = self._events.get(timeout=0.1)
            except queue.Empty:
                continue
            if event is None:
                return
            event()
