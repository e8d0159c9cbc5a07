#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard itself reads of a folder, as JSON: {"scalars": {tag: [[step, value], ...]},
"images": [[step, width, height], ...]}. Exits 77 if TensorBoard is not installed."""
import json
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(error)
    sys.exit(77)

EVERYTHING = {"scalars": 0, "images": 0, "tensors": 0}  # keep all; the default is a sample
events = EventAccumulator(sys.argv[1], size_guidance=EVERYTHING)
events.Reload()
print(json.dumps({
    "scalars": {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]},
    "images": [[e.step, e.width, e.height] for tag in events.Tags()["images"] for e in events.Images(tag)]}))
