# SPDX-License-Identifier: Apache-2.0
"""The functions of the package, named after the verbs of the program."""
from __future__ import annotations

import contextlib
import difflib
import json
import os
import pathlib
import sys
from inspect import signature
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Union

from . import _library, _program
from ._errors import ACCURACY_GATE, ZsqError
from ._evaluation import Evaluation
from ._models import Model, as_file, in_memory, name_of
from ._progress import Viewer, Watch, viewer
from ._results import Check, Comparison, Export, Images, Inspection, Report

Path = Union[str, "os.PathLike[str]"]

#: Parameters that all functions which read a model take besides their own, and the settings that they are.
COMMON = {
    "arch": "model.arch",
    "image_size": "model.image_size",
    "channels": "model.channels",
    "output_kind": "model.output",
    "bn_stats": "model.bn_stats",
    "device": "process.device",
    "threads": "process.threads",
}
PROGRAM_VERBS = {"evaluate": "eval"}

if TYPE_CHECKING:
    from typing import TypedDict

    from typing_extensions import Unpack

    class Common(TypedDict, total=False):
        """arch: a built-in architecture, for files that hold weights only.
        image_size: height and width of images, where the file leaves them open: 224 or (48, 192).
        channels: of images, where the file leaves their number open.
        output_kind: "logits", "scores" or "values", where the end of the network does not tell.
        bn_stats: a safetensors file with the statistics of BatchNorm that was folded on export.
        device: "auto", "cpu" or "cuda". threads: of the CPU.
        settings: recipe settings by their keys, {"process.agreement_images": 64}; they come last.
        """

        arch: str
        image_size: Union[int, "tuple[int, int]", str]
        channels: int
        output_kind: str
        bn_stats: Path
        device: str
        threads: int
        settings: Mapping[str, Any]


def _text(value: Any) -> str:
    """A value of a setting as recipes write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and len(value) == 2:
        return "x".join(map(str, value))  # height and width
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _settings(function: str, common: Mapping[str, Any], **own: Any) -> Dict[str, str]:
    """Settings by their keys, those of `settings` last. In `own`, "__" stands for the dot of a key."""
    given = {key.replace("__", "."): value for key, value in own.items()}
    for name, value in common.items():
        if name == "settings":
            continue
        if name not in COMMON:
            near = difflib.get_close_matches(name, ["settings", *COMMON, *signature(globals()[function]).parameters], 1)
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'" +
                            (f"; did you mean '{near[0]}'?" if near else "; recipe settings go by settings={...}"))
        given[COMMON[name]] = value
    given.update(common.get("settings") or {})
    return {key: _text(value) for key, value in given.items() if value is not None}


def _as_flags(settings: Mapping[str, str]) -> List[str]:
    """Of the program: --set for keys of recipes, --min_top1 and the like for others."""
    words = []
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"] if "." in key else ["--resume"] if key == "resume" else [f"--{key}", value]
    return words


def _ask(verb: str, recipe: Optional[Path], settings: Mapping[str, str], model: str, output: Optional[Path] = None, *,
         show: Viewer) -> Dict[str, Any]:
    """The JSON of libzsq; of the program if this process has torch: they would share a libtorch, whose global state
    (threads, TF32) the engine sets, and the versions may differ.
    """
    paths = [model] if output is None else [model, output]
    if "torch" not in sys.modules:
        result: Dict[str, Any] = json.loads(
            _library.Job(recipe if recipe or "effort" in settings else "deploy", settings).run("zsq_" + verb, *paths, show=show))
        return result
    words = [model] if output is None else [model, "--output_path", os.fspath(output)]
    words += [] if recipe is None else ["--recipe", os.fspath(recipe)]
    return _program.run(PROGRAM_VERBS.get(verb, verb), *words, *_as_flags(settings), show=show)[0]


def _original(model: Model) -> Model:
    """A Report stands for the folder of its run."""
    return model.folder if isinstance(model, Report) else model


def _folder(run: Union[Path, Report]) -> str:
    return os.fspath(_original(run))


def quantize(model: Model, scheme: Optional[str] = "W8A8", output: Optional[Path] = None, *, example: Any = None,
             recipe: Optional[Path] = None, effort: Optional[str] = None, preset: Optional[Path] = None, progress: Watch = True,
             eval_data: Optional[Path] = None, require_bn: bool = False, seed: Optional[int] = None,
             time_budget: Optional[Union[str, float]] = None, memory_limit: Optional[str] = None,
             target_size: Optional[str] = None, target_bops: Optional[str] = None, target_cost: Optional[str] = None,
             cost_table: Optional[Path] = None, min_top1: Optional[float] = None,
             min_agreement: Optional[float] = None, resume: bool = False, **common: Unpack[Common]) -> Report:
    """Quantizes a trained CNN without data, as `zsq quantize` does.

    model: a file (ONNX, TorchScript, .pt2, safetensors, .pth), an onnx.ModelProto, or a torch.nn.Module with
        `example`, an input [N, C, H, W] of it. What is in memory is written to OUTPUT/original.onnx, with BatchNorm
        kept (original.pt2 if PyTorch cannot export it to ONNX), which later steps read again.
    scheme: bits of weights and activations, 2 to 8 each. None: those of the recipe, or of a target_*.
    output: the folder for model.onnx, report.html and the rest. None: NAME-SCHEME in the working folder.
    recipe: a built-in recipe or a YAML file. "auto" trains as far as time_budget allows, "instant" does not train.
    effort: "seconds", "minute", "minutes" or "half_hour" chooses the recipe for you. With neither it is "auto".
    preset: preprocessing of images, by a name, preprocessor_config.json, or config.json of timm.
    progress: True for a bar, False for nothing, or a function that gets each zsq.Progress and may return False to stop.
    eval_data: real images to measure with; they never influence the result.
    require_bn: refuse a network without BatchNorm instead of taking statistics of synthetic images.
    seed: fixes every random draw. time_budget: 600, "10min", "2h". memory_limit: "6GB", "50%".
    target_size, target_bops, target_cost, cost_table: bits per layer under a budget, as the flags of the program.
    min_top1, min_agreement: in per cent; a result below is saved, and raises ZsqError with exit_code 3 and its report.
    resume: go on from OUTPUT/checkpoint, if there is one.
    common: arch, image_size, channels, output_kind, bn_stats, device, threads, settings.

    Raises ZsqError (exit_code 2 for a wrong setting or a bad file, 4 for a network that cannot be quantized, 75 if
    `progress` stopped it). After KeyboardInterrupt the folder holds a checkpoint, and resume=True goes on from there.
    """
    model = _original(model)
    settings = _settings(
        "quantize", common, scheme=scheme, mixed__target_size=target_size, mixed__target_bops=target_bops,
        mixed__target_cost=target_cost, mixed__cost_table=cost_table, data__eval_data=eval_data,
        model__require_bn=require_bn or None, data__preset=preset, process__seed=seed,
        process__time_budget=time_budget, process__memory_limit=memory_limit, effort=effort, min_top1=min_top1,
        min_agreement=min_agreement, resume=resume or None)
    folder = pathlib.Path(f"{name_of(model)}-{scheme or 'quantized'}" if output is None else output)
    with as_file(model, example, keep=folder) as path:
        try:
            if recipe is None and effort is None:
                recipe = "auto"
            return Report(_ask("quantize", recipe, settings, path, folder, show=viewer(progress)), folder)
        except ZsqError as error:
            if error.exit_code == ACCURACY_GATE:
                error.report = Report(json.loads((folder / "report.json").read_text(encoding="utf-8")), folder)
            raise


def inspect(model: Model, *, example: Any = None, scheme: Optional[str] = None, recipe: Path = "deploy",
            **common: Unpack[Common]) -> Inspection:
    """Layers, shapes, multiply-accumulates, what BatchNorm allows, and the bits that each layer would get.

    model, example, recipe, scheme, common: as in quantize(). Raises ZsqError: exit_code 2 for a file that is missing
    or damaged, 4 for an operator that is not known.
    """
    settings = _settings("inspect", common, scheme=scheme)
    with as_file(_original(model), example) as path:
        return Inspection(_ask("inspect", recipe, settings, path, show=Viewer()))


def evaluate(model: Union[Model, Report], data: Path, *, example: Any = None,
             against: Optional[Union[Model, Report]] = None, preset: Optional[Path] = None,
             annotations: Optional[Path] = None, boxes: Optional[str] = None, max_images: Optional[int] = None,
             batch_size: Optional[int] = None, progress: Watch = True, **common: Unpack[Common]) -> Evaluation:
    """What a model is worth on real images, as `zsq eval`.

    By the labels of the data it measures top-1 and top-5, of sets of labels mean average precision and F1, of masks
    pixel accuracy and mean IoU, of annotations COCO's average precision; the Evaluation has an attribute for each.

    model: as in quantize(), or a Report or the folder of a run, which record their preprocessing.
    data: a folder per class, CIFAR binaries, the folder of JPEGImages and SegmentationClass, or an .npz with images
        [N, C, H, W] and labels: classes [N], 0 and 1 [N, L], or masks [N, H, W], in which 255 is no class.
    annotations: COCO JSON with the boxes of the images in the folder `data`, for a detector. boxes: the layout of its
        outputs, where names and shapes do not tell: "yolov8", "yolov5", "ssd", "yunet" or "decoded".
    against: the float model, as `model`, with whose outputs those of the model are compared; needs no labels.
    example: for those of `model` and `against` that are modules of PyTorch.
    preset: preprocessing, which a float model needs. max_images: the first N only. batch_size: images per forward pass.
    progress, common: as in quantize(). Raises ZsqError: exit_code 2 for data or a preset that does not fit.
    """
    settings = _settings("evaluate", common, data__eval_data=data, data__preset=preset, data__annotations=annotations,
                         data__boxes=boxes, data__eval_images=max_images, data__eval_batch_size=batch_size)
    with contextlib.ExitStack() as stack:
        if against is None:
            path = stack.enter_context(as_file(_original(model), example))
            return Evaluation(_ask("evaluate", None, settings, path, show=viewer(progress)))
        # The C interface has no second model.
        paths = _both_as_files(stack, model, against, example)
        return Evaluation(_program.run("eval", paths[0], "--against", paths[1], *_as_flags(settings),
                                       show=viewer(progress))[0])


def _both_as_files(stack: "contextlib.ExitStack[Any]", a: Union[Model, Report], b: Union[Model, Report],
                   example: Any) -> List[str]:
    """`example` belongs to those that are modules."""
    return [stack.enter_context(as_file(_original(m), example if in_memory(m) else None)) for m in (a, b)]


def compare(a: Union[Model, Report], b: Union[Model, Report], *, example: Any = None, data: Optional[Path] = None,
            preset: Optional[Path] = None, count: Optional[int] = None, progress: Watch = True,
            **common: Unpack[Common]) -> Comparison:
    """Compares two models of one network on the same images, layer by layer, as `zsq compare`.

    a, b: as `model` of evaluate(). example: for those that are modules of PyTorch.
    data: real images; None: synthetic ones. count: how many (64). preset, progress, common: as in quantize().
    Raises ZsqError: exit_code 2 if they are not of one network.
    """
    settings = _settings("compare", common, data__eval_data=data, data__preset=preset)
    words = _as_flags(settings) + ([] if count is None else ["--count", str(count)])
    with contextlib.ExitStack() as stack:
        paths = _both_as_files(stack, a, b, example)
        return Comparison(_program.run("compare", *paths, *words, show=viewer(progress))[0])


def export(run: Union[Path, Report], target: str, output: Optional[Path] = None, *,
           model: Optional[Path] = None) -> Export:
    """Writes the model of a finished run for another runtime, as `zsq export`.

    run: a Report or the folder of a run. target: "onnxruntime", "openvino", "tensorrt", "generic", "qcdq", "tflite"
    or "ncnn". output: the file; None: FOLDER/model.TARGET.onnx, .tflite or .ncnn.param. model: the float network, if
    it is not where it was. Raises ZsqError: exit_code 2 for what the target cannot hold exactly.
    """
    words = [_folder(run), "--target", target]
    words += [] if output is None else ["--output_path", os.fspath(output)]
    words += [] if model is None else ["--model", os.fspath(model)]
    return Export(_program.run("export", *words, show=Viewer())[0])


def generate(model: Model, output: Path, images: int = 256, *, form: str = "png", example: Any = None,
             recipe: Path = "deploy", preset: Optional[Path] = None, require_bn: bool = False,
             seed: Optional[int] = None, progress: Watch = True, **common: Unpack[Common]) -> Images:
    """Synthetic images of the model's classes, made from its weights alone, as `zsq generate`.

    model, example, recipe, preset, require_bn, seed, progress, common: as in quantize().
    output: the folder. images: how many. form: "png" (a folder per class), "npy", "npz", "ort" or "safetensors".
    Raises ZsqError: exit_code 4 for a network without BatchNorm. KeyboardInterrupt leaves no images.
    """
    settings = _settings("generate", common, model__require_bn=require_bn or None, data__preset=preset,
                         process__seed=seed)
    with as_file(model, example) as path:
        result, _ = _program.run("generate", path, "--output_path", os.fspath(output), "--images", str(images),
                                 "--form", form, "--recipe", os.fspath(recipe), *_as_flags(settings),
                                 show=viewer(progress))
    return Images(result)


def check(run: Union[Path, Report], *, data: Optional[Path] = None, preset: Optional[Path] = None,
          images: Optional[int] = None, python: Optional[Path] = None, model: Optional[Path] = None,
          latency: bool = True, threads: Optional[int] = None, timeout: Optional[float] = None,
          progress: Watch = True) -> Check:
    """Whether the runtimes that are installed here compute what was measured of a run, as `zsq check`.

    run, model: as in export(). data: real images; None: the run's held-out synthetic ones. images: how many (64).
    python: one with onnxruntime, openvino, ai-edge-litert or ncnn; None: this one.
    latency: measure it, too. threads: of a runtime (2). timeout: seconds of one file in one runtime (600).
    Result.equal is False if one computes something else. Raises ZsqError: exit_code 2 if no runtime is installed.
    """
    words = [_folder(run), *_as_flags(_settings("check", {}, data__eval_data=data, data__preset=preset))]
    for flag, value in (("images", images), ("python", python or _this_python()), ("model", model),
                        ("threads", threads), ("timeout", timeout)):
        words += [] if value is None else [f"--{flag}", _text(value)]
    words += [] if latency else ["--no_latency"]
    return Check(_program.run("check", *words, show=viewer(progress))[0])


def _this_python() -> Optional[str]:
    """Unless ZSQ_PYTHON names one."""
    return None if os.environ.get("ZSQ_PYTHON") else sys.executable or None
