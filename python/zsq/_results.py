# SPDX-License-Identifier: Apache-2.0
"""What the functions return: the JSON of the engine, with names for what is asked for most."""
from __future__ import annotations

import html
import pathlib
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple


class Result(Mapping[str, Any]):
    """The JSON object that the program prints, read only: result["seed"]. Keys are those of docs/formats.md."""

    #: The key of the list of rows that to_pandas() takes, and the columns that are shown of it.
    _rows_key = "layers"
    _columns: Tuple[str, ...] = ()

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = dict(document)

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __repr__(self) -> str:
        return f"<zsq.{type(self).__name__} " + ", ".join(f"{k}: {v}" for k, v in self._facts()) + ">"

    def __str__(self) -> str:
        return "\n".join(f"{name:<12} {value}" for name, value in self._facts())

    def _facts(self) -> List[Tuple[str, str]]:
        """Names and values of a summary."""
        return [(key, str(value)) for key, value in self._document.items() if not isinstance(value, (list, dict))]

    def _rows(self) -> List[Dict[str, Any]]:
        return list(self._document.get(self._rows_key) or [])

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame, one per layer (of check(): per runtime and file).

        Raises ImportError if pandas is not installed.
        """
        import pandas

        return pandas.DataFrame(self._rows())

    def _repr_html_(self) -> str:
        """For notebooks: the summary, and the rows folded away below it."""
        facts = "".join(f"<tr><th style='text-align:left'>{_text(name)}</th><td style='text-align:left'>{_text(value)}"
                        "</td></tr>" for name, value in self._facts())
        rows = self._rows()
        if not rows or not self._columns:
            return f"<table>{facts}</table>"
        head = "".join(f"<th>{_text(column)}</th>" for column in self._columns)
        body = "".join("<tr>" + "".join(f"<td>{_text(_cell(row.get(column)))}</td>" for column in self._columns) +
                       "</tr>" for row in rows)
        return (f"<table>{facts}</table><details><summary>{len(rows)} {_text(self._rows_key)}</summary>"
                f"<table><tr>{head}</tr>{body}</table></details>")

    def show(self) -> None:
        """In a notebook the table, otherwise the summary on stdout."""
        if "IPython" in sys.modules:
            from IPython import display, get_ipython

            if get_ipython() is not None:
                display.display(self)
                return
        print(self)


def _text(value: Any) -> str:
    return html.escape(str(value))


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _per_cent(share: Optional[float]) -> str:
    return "not measured" if share is None else f"{100 * share:.1f} %"


class Report(Result):
    """Of quantize(): report.json of the run."""

    _columns = ("name", "op", "weight_bits", "activation_bits", "output_sqnr", "executes_as")

    def __init__(self, document: Mapping[str, Any], folder: pathlib.Path) -> None:
        super().__init__(document)
        self.folder = folder  #: where all files of the run are

    @property
    def path(self) -> pathlib.Path:
        """model.onnx, which onnxruntime executes in integers."""
        return self.folder / "model.onnx"

    @property
    def page(self) -> pathlib.Path:
        """report.html: one file with everything, for a browser."""
        return self.folder / "report.html"

    @property
    def verdict(self) -> str:
        """How good the result is, in a sentence, with its uncertainty."""
        return str(self["verdict"])

    @property
    def agreement(self) -> Optional[float]:
        """Share, 0 to 1, of held-out synthetic images on which both networks name the same class.

        For other outputs than logits it is what the verdict calls it; None if nothing was measured.
        """
        return None if self["agreement"] is None else float(self["agreement"])

    @property
    def divergence(self) -> Optional[float]:
        """KL to the float network on these images, nats per image."""
        return None if self["divergence"] is None else float(self["divergence"])

    @property
    def layers(self) -> List[Dict[str, Any]]:
        """One dict per layer: name, op, weight_bits, activation_bits, scale, zero_point, output_sqnr in dB, ..."""
        return self._rows()

    def _facts(self) -> List[Tuple[str, str]]:
        size = self["size"]
        facts = [("verdict", self.verdict), ("agreement", _per_cent(self.agreement)),
                 ("divergence", "not measured" if self.divergence is None else f"{self.divergence:.4g}"),
                 ("scheme", f"{self['scheme']}, recipe {self['recipe']}, seed {self['seed']}"),
                 ("size", f"{size['fp32_bytes'] / 1e3:.1f} kB -> {size['quantized_bytes'] / 1e3:.1f} kB"),
                 ("time", f"{self['seconds']:.1f} s")]
        for who in ("teacher", "student"):
            if self[who]["top1"] is not None:
                facts.append((who, f"top-1 {self[who]['top1']:.2f} % of {self[who]['images']} images"))
        return [*facts, ("path", str(self.path))]


class Inspection(Result):
    """Of inspect()."""

    _columns = ("name", "op", "shape", "parameters", "macs", "weight_bits", "activation_bits")

    @property
    def quantizable(self) -> bool:
        """Whether quantize() takes it."""
        return bool(self["quantizable"])

    @property
    def input_shape(self) -> Tuple[int, ...]:
        """(channels, height, width)."""
        return tuple(self["input_shape"])

    @property
    def layers(self) -> List[Dict[str, Any]]:
        """One dict per layer: name, op, shape, parameters, macs, and the bits that it would get, 0 for none."""
        return self._rows()

    def _facts(self) -> List[Tuple[str, str]]:
        return [("model", str(self["model"])), ("input", "x".join(map(str, self["input_shape"]))),
                ("classes", str(self["classes"])),
                ("parameters", f"{self['parameters']}, {self['macs'] / 1e6:.1f} million MACs per image"),
                ("BatchNorm", f"{self['batch_norm']['verdict']}: {self['batch_norm']['explanation']}")]


class Comparison(Result):
    """Of compare(), the worst layer first."""

    _columns = ("name", "sqnr", "mean", "largest")

    @property
    def agreement(self) -> float:
        """Share, 0 to 1, of images on which both name the same class."""
        return float(self["agreement"])

    @property
    def divergence(self) -> float:
        """KL, nats per image."""
        return float(self["divergence"])

    @property
    def layers(self) -> List[Dict[str, Any]]:
        """One dict per layer: name, sqnr in dB, mean and largest difference in standard deviations."""
        return self._rows()


class Export(Result):
    """Of export()."""

    _columns = ("name", "op", "executes_as", "speed", "reason")

    @property
    def path(self) -> pathlib.Path:
        """The file that was written."""
        return pathlib.Path(self["file"])

    @property
    def layers(self) -> List[Dict[str, Any]]:
        """One dict per layer: name, op, executes_as, speed, reason."""
        return self._rows()


class Images(Result):
    """Of generate()."""

    @property
    def files(self) -> List[pathlib.Path]:
        """What was written."""
        return [pathlib.Path(name) for name in self["files"]]


class Check(Result):
    """Of check(): one row per runtime and file."""

    _rows_key = "rows"
    _columns = ("runtime", "version", "file", "decides", "equal", "agreement", "steps", "float_ms", "ms", "error")

    @property
    def equal(self) -> bool:
        """Whether the runtime that each file was written for computes what was measured."""
        return bool(self["equal"])

    @property
    def rows(self) -> List[Dict[str, Any]]:
        """One dict per runtime and file."""
        return self._rows()

    def _facts(self) -> List[Tuple[str, str]]:
        facts = [("equal", "yes" if self.equal else "no"), ("images", f"{self['images']} {self['images_kind']}")]
        return facts + [("verdict", str(sentence)) for sentence in self["verdict"]]
