#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small whole files for each target of tests/fuzz/ to start from.

make_seeds.py FOLDER: writes FOLDER/<target>/<name>, with what PyTorch exports if there is a PyTorch, and FOLDER/made.
"""
import io
import json
import pathlib
import struct
import sys
import warnings
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def as_text(archive):
    """The entries of a zip archive in the form that feed.cpp makes an archive of."""
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        parts = [b"@entry " + name.encode() + b"\n" + entries.read(name) for name in entries.namelist()
                 if not name.endswith((".debug_pkl", "serialization_id"))]
    return b"@zip\n\n" + b"\n".join(parts)


def npy(header, data, version=b"\x01\x00"):
    header = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + data


def arrays():
    """npy and npz."""
    def header(kind, shape):
        return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"

    images = npy(header("<f4", (2, 1, 1, 2)), struct.pack("<4f", 1, -2, 0.5, 3))
    labels = npy(header("<i8", (2,)), struct.pack("<2q", 5, 6))
    yield "npy", "images", images
    yield "npy", "labels", labels
    yield "npy", "flags", npy(header("|b1", "(3,)"), b"\0\1\0")
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", method) as archive:
            archive.writestr("images.npy", images)
            archive.writestr("labels.npy", labels)
        yield "npz", name, packed.getvalue()
        yield "npz", name + "_text", as_text(packed.getvalue())


def safetensors():
    header = json.dumps({"__metadata__": {"arch": "resnet20"},
                         "conv.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
                         "steps": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}})
    header += " " * (-len(header) % 8)
    yield "safetensors", "two", struct.pack("<Q", len(header)) + header.encode() + bytes(16)
    yield "safetensors", "none", struct.pack("<Q", 8) + b"{}      "


def varint(value):
    out = b""
    value &= 2**64 - 1
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    """A field of a protocol buffer: an integer, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, dims, floats):
    return b"".join(field(1, dim) for dim in dims) + field(2, 1) + field(8, name) + \
        field(9, struct.pack(f"<{len(floats)}f", *floats))


def value_info(name, dims):
    shape = b"".join(field(1, field(1, dim) if dim else field(2, "N")) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def node(kind, inputs, output, *attributes):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, kind) + \
        b"".join(field(5, attribute) for attribute in attributes)


def ints(name, values):
    return field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7)


def onnx():
    """Convolution, BatchNorm, ReLU, pool and linear layer of two channels, and one weight beside the file."""
    nodes = [node("Conv", ["x", "conv.weight"], "c", ints("pads", [1, 1, 1, 1]), ints("strides", [2, 2])),
             node("BatchNormalization", ["c", "g", "b", "m", "v"], "n", field(1, "epsilon") + varint(2 << 3 | 5) +
                  struct.pack("<f", 1e-5) + field(20, 1)),
             node("Relu", ["n"], "r"), node("GlobalAveragePool", ["r"], "p"), node("Flatten", ["p"], "f"),
             node("Gemm", ["f", "fc.weight", "b"], "y", field(1, "transB") + field(3, 1) + field(20, 2))]
    weights = [tensor("conv.weight", [2, 1, 3, 3], [i / 9 - 1 for i in range(18)])]
    weights += [tensor(name, [2], [0.5, 1]) for name in "gbmv"] + [tensor("fc.weight", [2, 2], [1, 2, 3, 4])]
    graph = b"".join(field(1, one) for one in nodes) + field(2, "g") + b"".join(field(5, one) for one in weights)
    graph += field(11, value_info("x", [0, 1, 8, 8])) + field(12, value_info("y", [0, 2]))
    opset = field(8, field(1, "") + field(2, 17))
    start = field(1, 8) + field(2, "pytorch") + field(14, field(1, "key") + field(2, "value"))
    for target in ("onnx", "model"):
        yield target, "network", start + field(7, graph) + opset
    shapes = [node("Shape", ["x"], "s"), node("Gather", ["s", "zero"], "n"), node("Constant", [], "e", field(1, "value") +
              field(5, field(1, 1) + field(2, 7) + field(7, -1)) + field(20, 4)), node("Unsqueeze", ["n"], "u", ints("axes", [0])),
              node("Concat", ["u", "e"], "t", field(1, "axis") + field(3, 0) + field(20, 2)), node("Reshape", ["x", "t"], "y")]
    graph = b"".join(field(1, one) for one in shapes) + field(5, field(2, 7) + field(7, 0) + field(8, "zero"))
    graph += field(11, value_info("x", [0, 1, 2, 2])) + field(12, value_info("y", [0, 4]))
    yield "model", "shapes", start + field(7, graph) + field(8, field(2, 11))
    beside = field(1, 4) + field(2, 1) + field(8, "w") + field(14, 1)
    beside += b"".join(field(13, field(1, key) + field(2, value)) for key, value in
                       {"location": "weights.bin", "offset": "0", "length": "16"}.items())
    yield "onnx", "external", start + field(7, field(5, beside)) + opset


def checkpoint():
    """A state dict of one tensor, written by hand: opcodes as PyTorch writes them."""
    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def named(module, name):
        return f"c{module}\n{name}\n".encode()

    storage = b"(" + text("storage") + named("torch", "FloatStorage") + text("0") + text("cpu") + b"K\x04tQ"
    one = named("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + b"K\0K\2K\2\x86K\2K\1\x86\x89" + \
        named("collections", "OrderedDict") + b")RtR"
    state = b"}(" + text("conv.weight") + one + b"q\0" + text("again") + b"h\0u"
    data = struct.pack("<4f", 1, 2, 3, 4)
    head = b"\x80\x02"
    yield "pth", "zip", b"@zip\n\n@entry net/data.pkl\n" + head + state + b".\n@entry net/byteorder\nlittle\n@entry net/data/0\n" + data
    yield "pth", "legacy", b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + head + b"M\xe9\x03." + head + \
        b"}(" + text("little_endian") + b"\x88u." + head + state + b"." + head + b"](" + text("0") + b"e." + \
        struct.pack("<q", 4) + data
    module = named("__torch__.net", "Net") + b")\x81}(" + text("training") + b"\x89" + text("weight") + one + b"ub"
    code = (b"class Net(Module):\n  weight : Tensor\n  def forward(self: __torch__.net.Net, x: Tensor) -> Tensor:\n"
            b"    y = torch.conv2d(x, self.weight, None, [1, 1], [0, 0])\n    if True:\n      z = torch.relu(y)\n"
            b"    else:\n      z = y\n    return torch.flatten(torch.adaptive_avg_pool2d(z, [1, 1]), 1)\n")
    for target in ("torchscript", "model"):
        yield target, "script", b"@zip\n\n@entry net/data.pkl\n" + head + module + b".\n@entry net/constants.pkl\n" + head + \
            b").\n@entry net/byteorder\nlittle\n@entry net/data/0\n" + data + b"\n@entry net/code/__torch__/net.py\n" + code


def program():
    graph = {"schema_version": {"major": 8, "minor": 17}, "torch_version": "2.11.0", "graph_module": {
        "graph": {"nodes": [{"target": "torch.ops.aten.relu.default", "name": "relu", "inputs": [
            {"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}], "outputs": [{"as_tensor": {"name": "y"}}]},
            {"target": "torch.ops.aten.flatten.using_ints", "name": "flatten", "inputs": [
                {"name": "self", "arg": {"as_tensor": {"name": "y"}}, "kind": 1},
                {"name": "start_dim", "arg": {"as_int": 1}, "kind": 1}], "outputs": [{"as_tensor": {"name": "z"}}]}],
            "tensor_values": {"x": {"sizes": [{"as_expr": {"expr_str": "s0"}}, {"as_int": 3}, {"as_int": 4}, {"as_int": 4}]}}},
        "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
                                      {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}],
                      "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "z"}}}}]}}}
    config = {"config": {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": {
        "dtype": 7, "sizes": [{"as_int": 2}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}}}}
    entries = {"models/model.json": graph, "data/weights/model_weights_config.json": config}
    text = b"@zip\n" + b"".join(f"\n@entry net/{name}\n{json.dumps(value)}".encode() for name, value in entries.items())
    for target in ("pt2", "model"):
        yield target, "program", text + b"\n@entry net/data/weights/weight_0\n" + bytes(8)


def png(width, height, kind):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + bytes(range(width * (3 if kind == 2 else 1))) for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


# A grey baseline image of 8 x 8 pixels with the smallest tables that are valid.
JPEG = bytes.fromhex("ffd8ffdb004300" + "01" * 64 + "ffc0000b080008000801011100ffc40014000100000000000000000000000000000009"
                     "ffc40014100100000000000000000000000000000000ffda0008010100003f0055ffd9")


def images():
    yield "image", "rgb.png", png(4, 3, 2)
    yield "image", "grey.png", png(5, 2, 0)
    yield "image", "grey.jpg", JPEG
    yield "image", "colour.ppm", b"P6 # a comment\n2 2 255\n" + bytes(range(12))
    yield "image", "grey.pgm", b"P2 2 1 255 0 9"
    yield "image", "two.bmp", b"BM" + struct.pack("<IIIIiiHHIIiiII", 62, 0, 54, 40, 1, -2, 1, 24, 0, 8, 0, 0, 0, 0) + bytes(8)
    yield "image", "one.tiff", b"II*\0\x08\0\0\0" + struct.pack("<H", 9) + b"".join(
        struct.pack("<HHII", tag, 3, 1, value) for tag, value in
        ((256, 2), (257, 2), (258, 8), (259, 1), (262, 1), (273, 122), (277, 1), (278, 2), (279, 4))) + bytes(8)
    yield "image", "lossless.webp", bytes.fromhex("524946461a000000574542505650384c0d0000002f00000010071011118888fe0700")
    yield "coco", "two", (b'{"images": [{"id": 1, "file_name": "a/b.jpg", "width": 9, "height": 8}, {"id": 2, "file_name": "c"}], '
                          b'"categories": [{"id": 3, "name": "cat"}], "annotations": [{"id": 1, "image_id": 2, "category_id": 3, '
                          b'"bbox": [1, 2.5, 3, 4], "area": 7, "iscrowd": 0, "segmentation": [[1, 2]]}]}')
    yield "cifar", "ten", bytes([7]) + bytes(range(256)) * 12
    yield "cifar", "hundred", bytes([3, 42]) + bytes(range(256)) * 12


def texts():
    for path in sorted((ROOT / "recipes").rglob("*.yaml")):
        target = "table" if path.parent.name == "tables" or path.name == "inputs.yaml" else "recipe"
        if target == "recipe" or path.stat().st_size < 6000:
            yield target, path.stem, path.read_bytes()
    yield "recipe", "anchors", b"extends: [instant, gptq]\nquantize: &a {bits: 4}\nfinetune: *a\n"
    yield "table", "rows", b"about: x\nseeds: [0, 1]\nrows:\n  - name: a\n    recipe: instant\n    settings: [process.seed=1]\n"


def by_pytorch(folder):
    """What PyTorch and safetensors write of a network of one block."""
    sys.path.append(str(ROOT / "tests/networks"))
    try:
        import torch_without_cuda
        torch_without_cuda.prepare(folder / "libraries")
        import torch
        from torch import nn
    except (ImportError, OSError):
        return
    torch.set_num_threads(1)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                            nn.Linear(2, 2)).eval()
    image = torch.zeros(1, 1, 6, 6)

    def saved(save, thing):
        file = io.BytesIO()
        save(thing, file)
        return file.getvalue()

    def legacy(thing, file):
        torch.save(thing, file, _use_new_zipfile_serialization=False)

    yield "pth", "torch_legacy", saved(legacy, {"state_dict": network.state_dict(), "epoch": 3})
    checkpoint_file = saved(torch.save, network.state_dict())
    yield "pth", "torch", checkpoint_file
    yield "pth", "torch_text", as_text(checkpoint_file)
    yield "pth", "torch_module", as_text(saved(torch.save, network))
    for name, script in {"traced": torch.jit.trace(network, image), "scripted": torch.jit.script(network)}.items():
        file = saved(torch.jit.save, script)
        yield "torchscript", "torch_" + name, file
        yield "torchscript", "torch_" + name + "_text", as_text(file)
        yield "model", "torch_" + name + "_text", as_text(file)
    file = saved(torch.export.save, torch.export.export(network, (image,)))
    yield "pt2", "torch", file
    yield "pt2", "torch_text", as_text(file)
    yield "model", "torch_program_text", as_text(file)
    model = io.BytesIO()
    torch.onnx.export(network, image, model, dynamo=False, opset_version=17, training=torch.onnx.TrainingMode.PRESERVE)
    yield "onnx", "torch", model.getvalue()
    yield "model", "torch_onnx", model.getvalue()


def main():
    warnings.simplefilter("ignore")
    folder = pathlib.Path(sys.argv[1])
    count = 0
    makers = [maker() for maker in (arrays, safetensors, onnx, checkpoint, program, images, texts)]
    for files in (*makers, by_pytorch(folder)):
        for target, name, data in files:
            (folder / target).mkdir(parents=True, exist_ok=True)
            (folder / target / name).write_bytes(data)
            count += 1
    (folder / "made").write_text(f"{count}\n")
    print(f"make_seeds: {count} files in {folder}")


if __name__ == "__main__":
    main()
