# SPDX-License-Identifier: Apache-2.0
"""What evaluate() returns."""
from __future__ import annotations

from typing import List, Tuple

from ._results import Result, _per_cent


class Evaluation(Result):
    """Of evaluate(). Measures of labels are in per cent; what was not measured is NaN.

    `measured` says what the labels of the data were: "classes" (top1, top5), "labels", sets of them
    (mean_average_precision, f1, label_accuracy), "pixels", masks (pixel_accuracy, mean_iou), "boxes" of annotations
    (ap, and the keys "ap50", "ap75", "ar100", "ap_small", "ap_medium", "ap_large"), or "nothing".
    With `against` there are agreement and divergence, too.
    """

    #: Names of a summary, and the keys that they are of.
    _measures = {"top-1": "top1", "top-5": "top5", "precision": "mean_average_precision", "F1": "f1",
                 "labels": "label_accuracy", "pixels": "pixel_accuracy", "mean IoU": "mean_iou", "AP": "ap"}

    def _number(self, key: str) -> float:
        return float(self.get(key, "nan"))

    @property
    def measured(self) -> str:
        """"classes", "labels", "pixels" or "nothing"."""
        return str(self["measured"])

    @property
    def top1(self) -> float:
        """Per cent of images whose label has the highest score."""
        return self._number("top1")

    @property
    def top5(self) -> float:
        """Per cent of images whose label is among the five highest scores."""
        return self._number("top5")

    @property
    def mean_average_precision(self) -> float:
        """Of sets of labels: the mean over the labels that some image has of their average precision, in per cent.

        Average precision is the mean, over the images that have the label, of the precision among the images whose
        score is as high or higher (VOC 2010, COCO).
        """
        return self._number("mean_average_precision")

    @property
    def f1(self) -> float:
        """Of sets of labels: the mean over the images of 2 |A and B| / (|A| + |B|), in per cent.

        A are the labels above 0.5, B those of the image; an image where both are empty counts as 100 %.
        """
        return self._number("f1")

    @property
    def label_accuracy(self) -> float:
        """Of sets of labels: per cent of all labels on the right side of 0.5; high where most labels are off."""
        return self._number("label_accuracy")

    @property
    def pixel_accuracy(self) -> float:
        """Of masks: per cent of the pixels, but those of no class (255), whose largest output is their class."""
        return self._number("pixel_accuracy")

    @property
    def mean_iou(self) -> float:
        """Of masks: the mean over the classes of intersection over union, TP / (TP + FP + FN), in per cent.

        Classes are those that a mask or the network names; pixels are counted over all images.
        """
        return self._number("mean_iou")

    @property
    def agreement(self) -> float:
        """Share, 0 to 1, of images on which the model and `against` name the same class."""
        return self._number("agreement")

    @property
    def divergence(self) -> float:
        """KL to `against`, nats per image."""
        return self._number("divergence")

    @property
    def ap(self) -> float:
        """COCO's average precision of boxes, IoU 0.5 to 0.95, per cent; NaN without annotations."""
        value = self.get("ap")
        return float("nan") if value is None else float(value)

    @property
    def images(self) -> int:
        """How many were looked at."""
        return int(self["images"])

    def _facts(self) -> List[Tuple[str, str]]:
        facts = [("model", str(self["model"])), ("data", f"{self['data']}, {self.images} images")]
        facts += [(name, f"{self[key]:.2f} %") for name, key in self._measures.items() if self.get(key) is not None]
        if "against" in self:
            facts += [("against", str(self["against"])), ("agreement", _per_cent(self.agreement)),
                      ("divergence", f"{self.divergence:.4g}")]
        return [*facts, ("time", f"{self['seconds']:.1f} s")]
