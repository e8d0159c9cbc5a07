# SPDX-License-Identifier: Apache-2.0
"""The one exception of the package."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._results import Report

INTERNAL, USAGE, ACCURACY_GATE, UNSUPPORTED_MODEL, OUT_OF_MEMORY, STOPPED = 1, 2, 3, 4, 5, 75


class ZsqError(RuntimeError):
    """What the engine refused, or what went wrong there; the text says what was found, what was expected, what to do.

    exit_code: that of the program zsq. 1 internal error, 2 an argument, a setting, or a file that is missing or
    damaged, 3 below min_top1 or min_agreement, 4 a model that cannot be quantized, 5 out of memory, 75 stopped.
    report: of exit code 3, whose result is saved all the same; otherwise None.
    """

    def __init__(self, message: str, exit_code: int = INTERNAL, report: Optional["Report"] = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.report = report
