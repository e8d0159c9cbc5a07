# SPDX-License-Identifier: Apache-2.0
"""`python -m zsq ARGUMENT...`: the program zsq, with its arguments and exit codes."""
from __future__ import annotations

import os
import sys
from typing import NoReturn

from . import _program
from ._errors import ZsqError


def main() -> NoReturn:
    """Becomes the program; what cannot be found ends with exit code 2, as there."""
    try:
        program = _program.find()
    except ZsqError as error:
        print(f"zsq: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.stdout.flush()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
