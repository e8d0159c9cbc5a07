#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: Pillow 13.0.0: Image.resize of images that become much lower, as portraits that become a square
# Packages: pillow==13.0.0
# Packages: numpy==2.4.6
# Guess: resize resamples along rows first and then along columns, rounding to 8 bits in between, whatever the
# | shape of the image is: so did every release until 12.0.0, and so do programs that repeat its arithmetic.
# Seen: where the height shrinks enough more than the width, columns come first, and the rounding in between falls
# | elsewhere: a fifth of the values is one higher or lower. Landscapes and squares are as before. A network
# | whose photographs are prepared by another release, or in C++, sees other pixels for some of its images only.
# Do: compare preprocessing on portraits, too, with a tolerance of one; for the former pixels resize the width and
# | the height by two calls.
# Output:
# > 500 x 375 -> 224 x 224: as rows first
# > 375 x 500 -> 224 x 224: as rows first
# > 300 x 600 -> 224 x 224: as columns first, 20 % of the values differ from rows first, by 1
# > 300 x 900 -> 224 x 224: as columns first, 19 % of the values differ from rows first, by 1
# > 900 x 300 -> 224 x 224: as rows first
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""One resize of noise beside two, of one side each: both round to 8 bits between the passes."""
import numpy
from PIL import Image

random = numpy.random.default_rng(0)
for width, height in [(500, 375), (375, 500), (300, 600), (300, 900), (900, 300)]:
    image = Image.fromarray(random.integers(0, 256, (height, width, 3)).astype("uint8"))
    whole = numpy.asarray(image.resize((224, 224), Image.Resampling.BILINEAR)).astype(int)
    orders = {"rows first": (224, height), "columns first": (width, 224)}
    halves = {name: numpy.asarray(image.resize(half, Image.Resampling.BILINEAR)
                                  .resize((224, 224), Image.Resampling.BILINEAR)).astype(int)
              for name, half in orders.items()}
    name = next(n for n, value in halves.items() if (value == whole).all())
    difference = abs(whole - halves["rows first"])
    share = "" if name == "rows first" else (f", {100 * (difference > 0).mean():.0f} % of the values differ from rows first, "
                                             f"by {difference.max()}")
    print(f"{width} x {height} -> 224 x 224: as {name}{share}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }
