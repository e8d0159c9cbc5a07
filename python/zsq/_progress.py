# SPDX-License-Identifier: Apache-2.0
"""How far a run is, and who is told: a callback, a bar of tqdm, or a line on a terminal."""
from __future__ import annotations

import dataclasses
import sys
from typing import Any, Callable, Mapping, Optional, Union


@dataclasses.dataclass(frozen=True)
class Progress:
    """A phase of a run.

    phase: "images", "calibrate", "fine-tune", "evaluate", ...
    step, total: 0 to total. Of generate() and other functions that run the program, per cent.
    seconds: since the phase began.
    metrics: losses and the like, by name.
    """

    phase: str
    step: int
    total: int
    seconds: float
    metrics: Mapping[str, float]


#: What the parameter `progress` takes. True: a bar; False or None: nothing; otherwise a function that is called with
#: each Progress, on the thread that called zsq. It stops the run by returning False; exceptions stop it, too, and
#: reach the caller.
Watch = Union[bool, None, Callable[[Progress], Any]]


class Viewer:
    """Shows a run; this one shows nothing."""

    def show(self, progress: Progress) -> bool:
        """False: stop the run."""
        return True

    def close(self) -> None:
        """The run has ended."""


class _Callback(Viewer):
    def __init__(self, function: Callable[[Progress], Any]) -> None:
        self._function = function

    def show(self, progress: Progress) -> bool:
        return self._function(progress) is not False


class _Bars(Viewer):
    """A bar of tqdm for each phase, in notebooks a widget."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm, self._phase = tqdm, ""
        self._bar: Any = None

    def show(self, progress: Progress) -> bool:
        if self._bar is None or progress.phase != self._phase or progress.step < self._bar.n:
            self.close()
            self._bar = self._tqdm(total=progress.total, desc=progress.phase, leave=False)
            self._phase = progress.phase
        if progress.metrics:
            self._bar.set_postfix({name: f"{value:.4g}" for name, value in progress.metrics.items()}, refresh=False)
        self._bar.update(progress.step - self._bar.n)
        return True

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


class _Line(Viewer):
    """One line of a terminal that is written again and again."""

    def __init__(self) -> None:
        self._drawn = False

    def show(self, progress: Progress) -> bool:
        share = 100 * progress.step // max(progress.total, 1)
        metrics = "".join(f"  {name} {value:.4g}" for name, value in progress.metrics.items())
        sys.stderr.write(f"\r\033[K{progress.phase} {share:3d} %{metrics}")
        sys.stderr.flush()
        self._drawn = True
        return True

    def close(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def viewer(watch: Watch) -> Viewer:
    """Of the parameter `progress`. Without tqdm, a bar is a line, and nothing if stderr is no terminal."""
    if callable(watch):
        return _Callback(watch)
    if not watch:
        return Viewer()
    tqdm = _tqdm()
    if tqdm is not None:
        return _Bars(tqdm)
    return _Line() if sys.stderr.isatty() else Viewer()


def _tqdm() -> Optional[Any]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
