# SPDX-License-Identifier: Apache-2.0
"""Exports the networks that tests import, each with the answer that it has to give.

make_networks.py FOLDER: does nothing where FOLDER was made by these files and these packages already.

FOLDER/<name>.onnx: PyTorch's TorchScript exporter with BatchNorm kept; <name>_dynamo.onnx: its newer exporter;
<name>_folded.onnx: the defaults of either, which fold BatchNorm. FOLDER/<name>.npz: `input` [2,3,H,W], `output`
(onnxruntime without optimisations), `output_f64` (PyTorch in double precision), `tolerance` (the largest difference
from `output` that counts as rounding) and `batch_norms` (how many layers, channels and negative scales there are).
<name>.traced.pt, .traced_frozen.pt, .scripted.pt, .frozen.pt, .folded.pt, .pt2 and .decomposed.pt2: the network as
PyTorch's own programs. <name>.pth, .legacy.pth and .safetensors: the state dict, for the networks whose architecture is built in.
photographs/ and photographs.npz, cifar10/: real images, labelled by PyTorch's run of EfficientNet-Lite0 and of
resnet20_random.
"""
import copy
import fcntl
import hashlib
import pathlib
import shutil
import sys
import warnings

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAMES = {"input_names": ["input"], "output_names": ["logits"]}


def key_of_contents():
    """Changes with these files and with the packages."""
    files = [*sorted(HERE.glob("*.py")), ROOT / "scripts/requirements.txt", ROOT / ".deps/torch/.installed"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def export(torch, network, image, path, opset=17, folded=False):
    """The TorchScript exporter."""
    keep = {} if folded else {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    torch.onnx.export(network, image, path, dynamo=False, opset_version=opset, **keep, **NAMES,
                      dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}})


def export_dynamo(torch, network, image, path, folded=False):
    """The exporter that torch.export feeds."""
    program = torch.export.export(network, (image,), dynamic_shapes=({0: torch.export.Dim("N")},))
    torch.onnx.export(program, (), path, dynamo=True, optimize=folded, external_data=False, opset_version=20,
                      verbose=False, **NAMES)


def answers(torch, network, image, path):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    output = session.run(None, {"input": image.numpy()})[0]
    exact = copy.deepcopy(network).double()(image.double()).numpy()
    tolerance = max(1e-3, 10 * abs(output - exact).max())
    scales = [module.weight for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    batch_norms = [len(scales), sum(map(len, scales)), sum(int((scale < 0).sum()) for scale in scales)]
    numpy.savez(path.with_suffix(".npz"), input=image.numpy(), output=output, output_f64=exact, tolerance=tolerance,
                batch_norms=batch_norms)


def save_containers(torch, network, stem):
    """The state dict of one network in the three files that hold one."""
    import safetensors.torch

    state = network.state_dict()
    torch.save(state, stem.with_suffix(".pth"))
    wrapped = {"state_dict": {"module." + name: tensor for name, tensor in state.items()}, "epoch": 3, "best_prec1": 91.0}
    torch.save(wrapped, stem.with_suffix(".legacy.pth"), _use_new_zipfile_serialization=False)
    safetensors.torch.save_file(state, stem.with_suffix(".safetensors"))


def save_programs(torch, network, image, stem, scriptable):
    """TorchScript, traced and scripted, each as it is and frozen; the exported program, with and without
    decompositions. The folded one has lost its BatchNorm."""
    def save_script(script, suffix):
        script.save(stem.with_suffix(suffix))

    traced = torch.jit.trace(network, image)
    save_script(traced, ".traced.pt")
    save_script(torch.jit.freeze(traced, optimize_numerics=False), ".traced_frozen.pt")
    if scriptable:
        script = torch.jit.script(network)
        save_script(script, ".scripted.pt")
        save_script(torch.jit.freeze(script, optimize_numerics=False), ".frozen.pt")
        save_script(torch.jit.freeze(script), ".folded.pt")
    program = torch.export.export(network, (image,), dynamic_shapes=({0: torch.export.Dim("N")},))
    torch.export.save(program, stem.with_suffix(".pt2"))
    torch.export.save(program.run_decompositions(), stem.with_suffix(".decomposed.pt2"))


def make(folder):
    import torch

    import families
    import photographs

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # tests run side by side
    for name in families.FAMILIES:
        network, side = families.random_network(name)
        image = torch.randn(2, 3, side, side)
        path = folder / f"{name}.onnx"
        export(torch, network, image, path)
        answers(torch, network, image, path)
        export_dynamo(torch, network, image, folder / f"{name}_dynamo.onnx")
        save_programs(torch, network, image, folder / name, name not in families.NOT_SCRIPTABLE)
        if name.startswith("resnet20"):
            save_containers(torch, network, folder / name)
        if name == "resnet20_random":
            export(torch, network, image, folder / "resnet20_random_folded.onnx", folded=True)
            export_dynamo(torch, network, image, folder / "resnet20_random_dynamo_folded.onnx", folded=True)
            photographs.save_cifar(network, folder / "cifar10")
        if name == "shufflenet_v2_x0_5":
            for opset in (9, 11, 13, 15, 20):
                export(torch, network, image, folder / f"{name}_opset{opset}.onnx", opset)
    network = families.efficientnet_lite0()
    save_containers(torch, network, folder / "efficientnet_lite0")
    path = folder / "efficientnet_lite0.onnx"
    image = photographs.save_imagenet(network, folder / "photographs")
    export(torch, network, image, path)
    answers(torch, network, image, path)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        key, made = key_of_contents(), folder / "made_from.txt"
        if made.exists() and made.read_text() == key:
            print(f"{folder} is up to date")
            return
        warnings.simplefilter("ignore")
        import torch_without_cuda
        torch_without_cuda.prepare(folder.with_suffix(".libraries"))
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        make(new)
        (new / "made_from.txt").write_text(key)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


if __name__ == "__main__":
    main()
